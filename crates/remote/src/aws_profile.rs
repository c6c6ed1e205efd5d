//! Keys in the files of AWS's tools: `~/.aws/credentials` and `~/.aws/config`.
//!
//! Source: AWS SDKs and Tools reference guide, "Shared config and credentials files". Only keys that stand there are read; sign-on
//! and processes that give keys are left to those tools, which can set the environment (`aws configure export-credentials`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// What a profile says that perflab uses.
#[cfg_attr(not(feature = "object-storage"), allow(dead_code, reason = "only buckets are opened with keys"))]
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct AwsProfile {
    pub(crate) access_key_id: Option<String>,
    pub(crate) secret_access_key: Option<String>,
    pub(crate) session_token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint_url: Option<String>,
}

impl AwsProfile {
    /// The profile that `AWS_PROFILE` names, else `default`; empty where there is none. The credentials file wins.
    pub(crate) fn read() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let file = |name: &str, usual: &str| {
            variable(name).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(usual)))
        };
        let profile = variable("AWS_PROFILE").and_then(|name| name.into_string().ok());
        let profile = profile.unwrap_or_else(|| "default".to_owned());
        let read =
            |path: Option<PathBuf>| path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"));
        let config = read(file("AWS_CONFIG_FILE", ".aws/config"));
        AwsProfile::from_texts(&credentials, &config, &profile)
    }

    fn from_texts(credentials: &str, config: &str, profile: &str) -> Self {
        let section = if profile == "default" { "default".to_owned() } else { format!("profile {profile}") };
        let mut keys = read_section(config, &section);
        keys.extend(read_section(credentials, profile));
        let mut take = |name: &str| keys.remove(name);
        AwsProfile {
            access_key_id: take("aws_access_key_id"),
            secret_access_key: take("aws_secret_access_key"),
            session_token: take("aws_session_token"),
            region: take("region"),
            endpoint_url: take("endpoint_url"),
        }
    }
}

/// The server that is spoken to instead of AWS's own: the environment's, else the profile's.
pub(crate) fn find_endpoint(profile: &AwsProfile) -> Option<String> {
    let named = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let variable = named.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    variable.or_else(|| profile.endpoint_url.clone())
}

/// The keys of a section; what is nested below a key is indented and left out.
fn read_section(text: &str, section: &str) -> BTreeMap<String, String> {
    let mut is_inside = false;
    let mut keys = BTreeMap::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with(['#', ';', ' ', '\t']) {
            continue;
        }
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            is_inside = name.split_whitespace().eq(section.split_whitespace());
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside) {
            // A comment after a value begins with a blank.
            let value = value.split(" #").next().unwrap_or_default().trim();
            keys.insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id=AKIAIOSFODNN7EXAMPLE\naws_secret_access_key=wJalr/EXAMPLEKEY\n\n\
                               [lab]\naws_access_key_id = LAB\naws_secret_access_key = s=cret # ours\n";

    const CONFIG: &str = "[default]\nregion=us-west-2\noutput=json\n\n[profile lab]\nregion = eu-central-1\n\
                          endpoint_url = http://127.0.0.1:7070\ns3 =\n  region = nested\n";

    #[test]
    fn profiles_are_read_as_awss_guide_writes_them() {
        let profile = AwsProfile::from_texts(CREDENTIALS, CONFIG, "default");
        assert_eq!(profile.access_key_id.as_deref(), Some("AKIAIOSFODNN7EXAMPLE"));
        assert_eq!(profile.secret_access_key.as_deref(), Some("wJalr/EXAMPLEKEY"));
        assert_eq!((profile.region.as_deref(), profile.endpoint_url), (Some("us-west-2"), None));
        let lab = AwsProfile::from_texts(CREDENTIALS, CONFIG, "lab");
        assert_eq!(lab.secret_access_key.as_deref(), Some("s=cret"));
        assert_eq!(lab.region.as_deref(), Some("eu-central-1"));
        assert_eq!(lab.endpoint_url.as_deref(), Some("http://127.0.0.1:7070"));
        assert!(AwsProfile::from_texts(CREDENTIALS, CONFIG, "none") == AwsProfile::default());
    }
}
