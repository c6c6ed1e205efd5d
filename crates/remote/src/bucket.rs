//! A bucket of S3, or of what speaks its language: with which keys, at which server, how patiently. Only the feature `object-storage` has
//! it.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut};
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use crate::aws_profile::{self, AwsProfile};
use crate::error::RemoteError;
use crate::remote_url::RemoteUrl;

/// How often a request is sent again that the server or the network failed, and for how long: a dead network is told within a minute.
const RETRIES: usize = 5;
const RETRY_FOR: Duration = Duration::from_secs(30);

const CONNECT_FOR: Duration = Duration::from_secs(5);

/// The bucket, with keys from the environment, the files of AWS's tools, or what a machine in a cloud is given; and whether there were
/// keys, or signs of some.
pub(crate) fn open_bucket(
    url: &RemoteUrl,
    bucket: &str,
) -> Result<(Arc<dyn ObjectStore>, bool), RemoteError> {
    let refuse = |reason: String| RemoteError::NoKeys { url: url.clone(), reason };
    // Another part of the process may have chosen one already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let profile = AwsProfile::read();
    let has = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    // Keys belong together: a profile that is asked for gives all of them, or the environment does.
    if !has(&builder, AmazonS3ConfigKey::AccessKeyId)
        && let (Some(id), Some(secret)) = (&profile.access_key_id, &profile.secret_access_key)
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = &profile.session_token {
            builder = builder.with_token(token);
        }
    }
    if !has(&builder, AmazonS3ConfigKey::Region)
        && let Some(region) = &profile.region
    {
        builder = builder.with_region(region);
    }
    if !has(&builder, AmazonS3ConfigKey::Endpoint)
        && !has(&builder, AmazonS3ConfigKey::S3Endpoint)
        && let Some(endpoint) = &profile.endpoint_url
    {
        builder = builder.with_endpoint(endpoint);
    }
    // A mounted secret may end with a line, and becomes a header of HTTP.
    let secrets = [
        (AmazonS3ConfigKey::AccessKeyId, "AWS_ACCESS_KEY_ID"),
        (AmazonS3ConfigKey::SecretAccessKey, "AWS_SECRET_ACCESS_KEY"),
        (AmazonS3ConfigKey::Token, "AWS_SESSION_TOKEN"),
        (AmazonS3ConfigKey::Region, "AWS_REGION"),
    ];
    for (key, name) in secrets {
        let value = builder.get_config_value(&key).unwrap_or_default();
        if !value.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(refuse(format!(
                "{name} has a blank, a line's end or another letter that no key has"
            )));
        }
    }
    let endpoint = aws_profile::find_endpoint(&profile);
    if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| !is_web_address(endpoint)) {
        return Err(refuse(format!(
            "AWS_ENDPOINT_URL is `{}`, without http:// or https://",
            endpoint.escape_debug()
        )));
    }
    // Whoever names a server without TLS means it.
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    let given = [
        "AWS_SKIP_SIGNATURE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    let has_keys = has(&builder, AmazonS3ConfigKey::AccessKeyId)
        || given.iter().any(|name| std::env::var_os(name).is_some());
    if let Some(name) = std::env::var_os("AWS_PROFILE").filter(|name| !name.is_empty() && !has_keys) {
        return Err(refuse(format!(
            "the profile `{}` has no keys in ~/.aws/credentials or ~/.aws/config",
            name.display()
        )));
    }
    let options = ClientOptions::new().with_connect_timeout(CONNECT_FOR).with_allow_http(is_plain);
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_FOR, ..RetryConfig::default() };
    let built = builder
        .with_client_options(options)
        .with_retry(retry)
        .with_checksum_algorithm(Checksum::SHA256)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .build();
    let built = built.map_err(|error| refuse(error.to_string()))?;
    Ok((Arc::new(built), has_keys))
}

fn is_web_address(endpoint: &str) -> bool {
    let host = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && host.chars().all(|letter| letter.is_ascii_graphic()))
}
