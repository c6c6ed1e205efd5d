#compdef perflab
# Completes perflab's command line in zsh: perflab itself says what may stand at the cursor.
_perflab() {
    local -i at
    # Behind -- stands a command of its own.
    for ((at = 2; at < CURRENT; at++)); do
        if [[ $words[at] == -- ]]; then
            shift at words
            ((CURRENT -= at))
            _normal
            return
        fi
    done
    local -a found whole begun
    local line
    found=("${(@f)$(command perflab complete zsh -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    # What is not at its end yet is followed by no space.
    for line in $found; do
        case $line in
            (*[=/:]$'\t'*) begun+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
            (*$'\t'*) whole+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (($#begun + $#whole)) || { _files; return }
    (($#begun)) && _describe -V 'perflab' begun -S ''
    (($#whole)) && _describe -V 'perflab' whole
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _perflab "$@"
else
    compdef _perflab perflab
fi
