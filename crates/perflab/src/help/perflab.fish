# Completes perflab's command line in fish: perflab itself says what may stand at the cursor.
function __perflab_complete
    set -l current (commandline --current-token --cut-at-cursor)
    set -l found (command perflab complete fish -- (commandline --current-process --tokenize --cut-at-cursor) "$current" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete --command perflab --no-files --keep-order --arguments '(__perflab_complete)'
