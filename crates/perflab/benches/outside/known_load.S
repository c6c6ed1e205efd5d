# A kernel that calls one loop from two functions: interrupts are off for OFF of every PERIOD turns, and on for the rest.
# Turns, and not a clock: on a busy host a processor that did not run for a while would find its time over, wherever it is. One loop,
# and not two: QEMU's translations of two are not equally fast.
# By the multiboot protocol it begins in 32 bits at 1 MiB; it goes on in 64 bits at -2 GiB, where kernels are.
    .set MAGIC, 0x1BADB002
    .set HIGH, 0xffffffff80000000

    .section .text
    .code32
    .align 4
header:
    .long MAGIC, 0x00010000, -(MAGIC + 0x00010000)
    .long header - HIGH, header - HIGH, _edata - HIGH, _end - HIGH, start - HIGH
start:
    mov $(directory_of_directories - HIGH), %eax
    or $3, %eax
    mov %eax, top - HIGH
    mov %eax, top - HIGH + 8 * 511
    mov $(directory - HIGH), %eax
    or $3, %eax
    mov %eax, directory_of_directories - HIGH
    mov %eax, directory_of_directories - HIGH + 8 * 510
    # One GiB in pages of 2 MiB.
    mov $(directory - HIGH), %edi
    mov $0x83, %eax
    mov $512, %ecx
1:  mov %eax, (%edi)
    add $0x200000, %eax
    add $8, %edi
    loop 1b
    mov %cr4, %eax
    or $0x20, %eax
    mov %eax, %cr4
    mov $(top - HIGH), %eax
    mov %eax, %cr3
    mov $0xC0000080, %ecx
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    lgdt descriptors_at - HIGH
    ljmp $8, $(long_mode - HIGH)

    .code64
long_mode:
    movabs $high, %rax
    jmp *%rax
high:
    mov $stack_top, %rsp
    # The interrupt controllers say nothing.
    mov $0xff, %al
    outb %al, $0x21
    outb %al, $0xa1

    .align 64
    .globl _stext
_stext:
run:
    push %rbp
    mov %rsp, %rbp
again:
    cli
    mov $OFF, %ecx
    call without_interrupts
    sti
    mov $(PERIOD - OFF), %ecx
    call with_interrupts
    jmp again

    .macro caller name
    .align 64
    .globl \name
\name:
    push %rbp
    mov %rsp, %rbp
    call spin
    pop %rbp
    ret
    .endm

    caller without_interrupts
    caller with_interrupts

    .align 64
    .globl spin
spin:
    push %rbp
    mov %rsp, %rbp
2:  dec %ecx
    jnz 2b
    pop %rbp
    ret

    .align 64
    .globl rest
rest:
    nop

    .align 8
descriptors:
    .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
descriptors_at:
    .word 23
    .long descriptors - HIGH

    .section .bss
    .align 4096
top:
    .skip 4096
directory_of_directories:
    .skip 4096
directory:
    .skip 4096
    .skip 4096
stack_top:
