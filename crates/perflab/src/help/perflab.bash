# Completes perflab's command line in bash: perflab itself says what may stand at the cursor.
_perflab() {
    COMPREPLY=()
    local at line
    # Behind -- stands a command of its own.
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} == -- ]]; then
            declare -F _command_offset >/dev/null && _command_offset $((at + 1))
            return
        fi
    done
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(command perflab complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    # What is not at its end yet is followed by no space.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o default -F _perflab perflab
complete -o nosort -o bashdefault -o default -F _perflab perflab 2>/dev/null
