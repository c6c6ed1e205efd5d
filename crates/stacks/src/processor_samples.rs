//! Samples of stopped processors, named.

use perflab_model::profile::{ProfileSummary, StackBatch, SymbolAnchor};
use perflab_model::{Nanos, Unit};

use crate::kernel_symbols::KernelSymbols;
use crate::sampled_kernel::SampledStack;
use crate::stack_converter::{AddressSample, MARK_KERNEL, MARK_USER, StackConverter, SymbolSources};

/// What a task is called that has no name.
const NAMELESS: &str = "[guest]";

/// One processor at one stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorSample {
    /// When, on this host's clock.
    pub at: Nanos,
    /// Which processor.
    pub cpu: u32,
    /// The next instruction.
    pub instruction: u64,
    /// What it did.
    pub stack: SampledStack,
}

/// The converter of samples of one guest; keeps its names from one iteration to the next.
#[derive(Debug)]
pub struct ProcessorProfile {
    converter: StackConverter,
    anchors: Vec<SymbolAnchor>,
}

impl ProcessorProfile {
    /// With the guest's symbols; `anchors` are kernel symbols to look up whether or not a sample hits them.
    pub fn new(symbols: KernelSymbols, anchors: &[String]) -> ProcessorProfile {
        let anchors = symbols.find_anchors(anchors);
        let sources =
            SymbolSources { kernel: Some(symbols), kernel_distance: 0, files: None, is_certain: true };
        ProcessorProfile { converter: StackConverter::new(sources), anchors }
    }

    /// Names samples, each of which stands for `weight` of a processor's time. Frequency and cost are the sampler's to say.
    pub fn convert(
        &mut self,
        samples: &[ProcessorSample],
        weight: Nanos,
        slot: u32,
    ) -> (StackBatch, ProfileSummary) {
        let mut chain = Vec::new();
        for sample in samples {
            chain.clear();
            match &sample.stack.kernel {
                Some(stack) => {
                    chain.push(MARK_KERNEL);
                    chain.extend_from_slice(&stack.addresses);
                }
                None => chain.extend([MARK_USER, sample.instruction]),
            }
            let comm = if sample.stack.comm.is_empty() { NAMELESS } else { &sample.stack.comm };
            let raw = AddressSample {
                at: Some(sample.at),
                cpu: Some(sample.cpu),
                period: weight.0,
                ..AddressSample::default()
            };
            self.converter.add_named_sample(raw, comm, &chain);
        }
        let about = ProfileSummary {
            slot,
            unit: Unit::new("ns"),
            anchors: self.anchors.clone(),
            ..ProfileSummary::default()
        };
        (self.converter.take_batch(slot), about)
    }
}
