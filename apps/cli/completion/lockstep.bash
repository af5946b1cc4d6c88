# bash completion for lockstep(1). What there is to complete is asked of the program itself: its --help, and the names at the server.

_lockstep_options() { # of a sub-command, with the common ones
    { "$@" --help; "$1" --help; } 2>/dev/null | sed -n 's/^ *\(-[-a-zA-Z0-9,]*\).*/\1/p' | tr ',' '\n' | grep -- "^-" | sort -u
}

_lockstep_actions() { # the sub-commands of what was typed so far
    "$@" --help 2>/dev/null | sed -n 's/^  \([a-z][-a-z]*\).*/\1/p'
}

_lockstep_command() { # what stands behind --, from this word on
    local cur=${COMP_WORDS[COMP_CWORD]}
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif (($1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}

_lockstep() {
    local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} i word actions value= positionals=0
    local -a path=("$program") server=()
    local takes_value=' --redis --prefix --user --password-file --tls-ca --tls-cert --tls-key --tls-server-name --name --server-wait -w --wait
        --timeout -c --permits -E --conflict-exit-code --ttl --at-least --max-hold --kill-after --keep --count --by -p --parties --idle --sort
        --listen --port --token-file --metrics-token-file --allow-host
        --most --hold --reason --every --within --slow --id --priority --delay --key --tag --tags --requeue --drop --version --fence
        --type --state --older-than --from --attempts --zone --missed --late --exec --concurrency --lease --grace --stop-after
        --limit --per --algorithm --burst --cost --expected --order --ties --period --skip --previous --retention --for '
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $value ]]; then
            case $value in --redis | --prefix | --user | --password-file | --tls-*) server+=("$value" "$word") ;; esac
            value=
        elif [[ $word == -- ]]; then
            _lockstep_command $((i + 1))
            return
        elif [[ $word == -* ]]; then
            [[ $takes_value == *[[:space:]]"$word"[[:space:]]* ]] && value=$word
        elif ((${#path[@]} == 1)); then
            path+=("$word")
        elif ((${#path[@]} == 2 && positionals == 0)) && [[ " sem event latch queue jobs value map counter board session breaker server " == *" ${path[1]} "* ]]; then
            path+=("$word")
        else
            positionals=$((positionals + 1))
        fi
    done
    case $value in
        --password-file | --tls-ca | --tls-cert | --tls-key | --token-file | --metrics-token-file)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
            ;;
        --algorithm) mapfile -t COMPREPLY < <(compgen -W 'log window bucket' -- "$cur") && return ;;
        --order) mapfile -t COMPREPLY < <(compgen -W 'highest lowest' -- "$cur") && return ;;
        --ties) mapfile -t COMPREPLY < <(compgen -W 'member earlier' -- "$cur") && return ;;
        --period) mapfile -t COMPREPLY < <(compgen -W 'hour day week month' -- "$cur") && return ;;
        --for) mapfile -t COMPREPLY < <(compgen -W 'locks messaging jobs state near-cache look act' -- "$cur") && return ;;
        --sort) mapfile -t COMPREPLY < <(compgen -W 'name held queue' -- "$cur") && return ;;
        ?*) return ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_lockstep_options "${path[@]}")" -- "$cur")
        return
    fi
    ((positionals == 0)) && actions=$(_lockstep_actions "${path[@]}")
    if [[ -n $actions ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$actions" -- "$cur")
        return
    fi
    case "${path[1]}:$positionals" in server:* | acl:* | health:* | doctor:* | dashboard:* | demo:* | *:[1-9]*) return ;; esac
    while IFS= read -r word; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
    done < <("$program" "${server[@]}" --server-wait 500ms ls --names 2>/dev/null)
}

complete -F _lockstep lockstep
