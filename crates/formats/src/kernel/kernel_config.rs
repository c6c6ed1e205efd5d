//! The kernel's configuration: `CONFIG_HZ=250`, `# CONFIG_KASAN is not set`.

/// The options of a configuration in its order, named without `CONFIG_`, each with its value: `y`, `m`, a number, a text
/// without its quotes, or `n` where it is not set.
pub fn list_config_options(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(parse_config_line)
}

fn parse_config_line(line: &str) -> Option<(&str, &str)> {
    let unset = || Some((line.strip_prefix("# CONFIG_")?.strip_suffix(" is not set")?, "n"));
    let set = || line.strip_prefix("CONFIG_")?.split_once('=');
    set().or_else(unset).map(|(name, value)| (name, value.trim_matches('"')))
}

/// The value of one option; nothing where it is not mentioned.
pub fn find_config_option<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    list_config_options(text).find(|(name, _)| *name == option).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_unset_or_unknown() {
        let text =
            "#\n# General\nCONFIG_HZ=250\nCONFIG_HZ_250=y\n# CONFIG_KASAN is not set\nCONFIG_X=\"a b\"";
        assert_eq!(find_config_option(text, "HZ"), Some("250"));
        assert_eq!(find_config_option(text, "KASAN"), Some("n"));
        assert_eq!(find_config_option(text, "X"), Some("a b"));
        assert_eq!(find_config_option(text, "SLUB"), None);
        assert_eq!(list_config_options(text).count(), 4);
    }
}
