/** `completion`: makes shells complete commands, options and the names in config. */
import { complete } from './complete.ts'
import { type Command, commonOptions, UsageError } from './command.ts'

/** Each script calls this program at every tab, so it never needs an update. */
const scripts: Readonly<Record<string, string>> = {
  bash: `_console_gateway () {
  local line current="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :files) compopt -o filenames 2>/dev/null; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
      :folders) compopt -o filenames 2>/dev/null; while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _console_gateway console-gateway
`,
  zsh: `#compdef console-gateway
_console_gateway () {
  local line value
  local -a found
  while IFS= read -r line; do
    case "$line" in
      :files) _files ;;
      :folders) _files -/ ;;
      *) value="\${line%%$'\\t'*}"; found+=("\${value//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done < <("\${words[1]}" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#found} )) && _describe console-gateway found
}
if [ "\${funcstack[1]}" = _console_gateway ]; then _console_gateway "$@"; else compdef _console_gateway console-gateway; fi
`,
  fish: `function __console_gateway_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] completion words -- $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case ':files'
        __fish_complete_path "$current"
      case ':folders'
        __fish_complete_directories "$current"
      case '*'
        echo $line
    end
  end
end
complete -c console-gateway -f -a '(__console_gateway_complete)'
`
}

/** @param others all commands but this one */
export function createCompletion(others: Readonly<Record<string, Command>>): Command {
  const completion: Command = {
    summary: 'print a script that makes a shell complete commands, options and names of config',
    ways: Object.keys(scripts).map(words => ({ words })),
    checksWords: true,
    details: `
Routes, paths, roles and users come from the config folder of the command line.

Examples:
  source <(console-gateway completion bash)             # in ~/.bashrc
  console-gateway completion zsh > "\${fpath[1]}/_console-gateway"
  console-gateway completion fish > ~/.config/fish/completions/console-gateway.fish`,
    run: async ({ rest: [shell = '', ...words], io }) => {
      if (shell === 'words') {
        const { candidates, names } = await complete(words, {
          commands: { ...others, completion },
          common: commonOptions,
          // A shell asks at every tab: only names of config need the config.
          valuesOf: async (placeholder, folder) =>
            (await import('./completed-values.ts')).valuesOf(placeholder, folder, io)
        })
        io.stdout.write(
          candidates.map(({ value, about }) => `${value}\t${about}\n`).join('') +
            (names === undefined ? '' : `:${names}\n`)
        )
        return 0
      }
      const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
      if (script === undefined || words.length > 0) {
        throw new UsageError(`Name a shell: ${Object.keys(scripts).join(', ')}.`)
      }
      io.stdout.write(script)
      return 0
    }
  }
  return completion
}
