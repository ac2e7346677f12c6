import type { Command } from 'commander'
import type { Invocation } from './command.ts'

interface Place {
  readonly words: string
  readonly subcommands: readonly string[]
  readonly options: readonly string[]
}

export function completionOf(program: Command) {
  return async ({ rest: [shell], io }: Invocation): Promise<number> => {
    if (shell === 'zsh') io.stdout.write('autoload -U +X bashcompinit && bashcompinit\n')
    io.stdout.write(bashScript(placesOf(program, [])))
    return 0
  }
}

function placesOf(command: Command, names: readonly string[]): Place[] {
  const help = command.createHelp()
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)]
  const place = {
    words: names.join(' '),
    subcommands: command.commands.map(each => each.name()),
    options: [...new Set(options.flatMap(({ long }) => long ?? []))]
  }
  return [place, ...command.commands.flatMap(each => placesOf(each, [...names, each.name()]))]
}

/** Where no name fits, the shell completes files. */
function bashScript(places: readonly Place[]): string {
  const known = places.filter(({ words }) => words !== '').map(({ words }) => `' ${words}'`)
  const lines = places.map(({ words, subcommands, options }) => {
    return `    '${words && ` ${words}`}') names='${[...subcommands, ...options].join(' ')}' ;;`
  })
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
