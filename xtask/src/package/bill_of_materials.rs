//! What the program is made of, as SPDX 2.3 in JSON: every crate with its version, licence, sum and place at the registry, and which of
//! them uses which (<https://spdx.github.io/spdx-spec/v2.3/>).

use anyhow::Result;
use serde_json::{Value, json};

use super::checksums::sum_bytes;
use super::shipped_crates::{ShippedCrate, ShippedCrates};

/// What SPDX writes where nobody says it.
const UNSAID: &str = "NOASSERTION";

/// The document, made at `date`, which is written as RFC 3339 has it.
pub fn render_bill(crates: &ShippedCrates, version: &str, date: &str) -> Result<Vec<u8>> {
    let packages: Vec<Value> =
        crates.list.iter().enumerate().map(|(place, one)| describe_package(place, one)).collect();
    let root = crates.list.iter().position(|one| one.name == "perflab").unwrap_or_default();
    let relate = |from: String, kind: &str, to: String| json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to });
    let mut relationships = vec![relate("SPDXRef-DOCUMENT".into(), "DESCRIBES", package_id(root))];
    for (place, one) in crates.list.iter().enumerate() {
        relationships
            .extend(one.uses.iter().map(|used| relate(package_id(place), "DEPENDS_ON", package_id(*used))));
    }
    // The name of the document is to be its own: it is made of what is in it.
    let own = sum_bytes(&serde_json::to_vec(&packages)?);
    let document = json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("perflab-{version}"),
        "documentNamespace": format!("https://github.com/perflab/perflab/spdx/perflab-{version}-{}", own.get(..16).unwrap_or(&own)),
        "creationInfo": { "created": date, "creators": ["Tool: cargo-xtask-package"] },
        "packages": packages,
        "relationships": relationships,
    });
    Ok(serde_json::to_vec_pretty(&document)?)
}

fn package_id(place: usize) -> String {
    format!("SPDXRef-Package-{place}")
}

fn describe_package(place: usize, one: &ShippedCrate) -> Value {
    let said = |text: &str| if text.is_empty() { UNSAID.to_owned() } else { text.to_owned() };
    let ShippedCrate { name, version, .. } = one;
    let location = match one.is_own {
        true => said(&one.repository),
        false => format!("https://static.crates.io/crates/{name}/{name}-{version}.crate"),
    };
    let mut package = json!({
        "SPDXID": package_id(place),
        "name": name,
        "versionInfo": version,
        "downloadLocation": location,
        "filesAnalyzed": false,
        "licenseConcluded": said(&one.licence),
        "licenseDeclared": said(&one.licence),
        "copyrightText": UNSAID,
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER",
            "referenceType": "purl",
            "referenceLocator": format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")),
        }],
    });
    if let (Some(sum), Some(package)) = (&one.checksum, package.as_object_mut()) {
        package.insert("checksums".into(), json!([{ "algorithm": "SHA256", "checksumValue": sum }]));
    }
    package
}
