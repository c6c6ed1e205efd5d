//! What the kernel did: monitors and host facts.
