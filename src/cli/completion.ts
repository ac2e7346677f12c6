import type { Command } from 'commander'
import type { Invocation } from './command.ts'

type Place = readonly [words: string, names: string]

export function completionOf(program: Command) {
  return async ({ rest: [shell] }: Invocation) => {
    const first = shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''
    return { painted: first + bashScript(placesOf(program, '')) }
  }
}

function placesOf(command: Command, words: string): Place[] {
  const help = command.createHelp()
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)]
  const longOptions = new Set(options.flatMap(({ long }) => long ?? []))
  const names = [...command.commands.map(each => each.name()), ...longOptions].join(' ')
  const below = command.commands.flatMap(each => placesOf(each, `${words} ${each.name()}`))
  return [[words, names], ...below]
}

/** Where no name fits, the shell completes files. */
function bashScript(places: readonly Place[]): string {
  const known = places.flatMap(([words]) => (words === '' ? [] : `'${words}'`))
  const lines = places.map(([words, names]) => `    '${words}') names='${names}' ;;`)
  return `_console_gateway () {
  local at= word names
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${known.join('|')}) at="$at $word" ;;
    esac
  done
  case "$at" in
${lines.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$names" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _console_gateway console-gateway
`
}
