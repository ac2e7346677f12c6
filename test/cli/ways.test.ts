/** Each command line is one way to call its command: nothing of it is ignored. */
import { globSync } from 'node:fs'
import t from 'tap'
import { type Command, UsageError } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands.ts'
import { parseInvocation } from '../../src/cli/invocation.ts'
import { usageOf } from '../../src/cli/usage.ts'
import { waysOf } from '../../src/cli/ways.ts'
import { run } from '../support/command.ts'
import { blocksOf } from '../support/doc-blocks.ts'

const all = Object.entries(commands as Readonly<Record<string, Command>>)

function parse(words: readonly string[]) {
  const name = words.find(word => Object.hasOwn(commands, word)) ?? ''
  return parseInvocation(name, commands[name as keyof typeof commands], words, process)
}

function refusal(...words: readonly string[]): unknown {
  try {
    parse(words)
  } catch (error) {
    return error instanceof UsageError ? error.message : error
  }
  return 'taken'
}

t.test('an option of another subcommand, or of another use, is refused', t => {
  const dir = ['--config', 'none']
  for (const [words, option, owner] of [
    [['maintenance', 'end', '--message', 'x'], 'message', 'begin'],
    [['maintenance', 'end', '--method', 'GET'], 'method', 'begin'],
    [['maintenance', '--until', '30m'], 'until', 'begin'],
    [['maintenance', 'show', '--message', 'x'], 'message', 'begin'],
    [['presets', 'show', 'drf', '--json'], 'json', ''],
    [['presets', '--merged'], 'merged', 'show'],
    [['sessions', 'list', '--everyone'], 'everyone', 'close'],
    [['sessions', 'close', 'x', '--everyone'], 'everyone', 'close'],
    [['users', 'set-password', 'x', '--role', 'y'], 'role', 'add'],
    [['plan', 'new', '--url', 'http://x'], 'url', ''],
    [['why', 'x', '--user', 'y'], 'user', '']
  ] as const) {
    const [name] = words
    const message = String(refusal(...words, ...dir))
    const start = `--${option} is no option of "${name}`
    t.equal(message.slice(0, start.length), start, words.join(' '))
    t.match(message, `but of "${[name, owner].join(' ').trim()}`, words.join(' '))
  }
  t.end()
})

t.test('words that are too few, too many or unknown are refused', t => {
  for (const [words, message] of [
    [['maintenance', 'ends'], 'There is no "maintenance ends". Did you mean "end"?'],
    [['limits', 'show'], 'Missing after "limits show": CALLER.'],
    [['limits', 'show', 'x', 'y'], 'Not understood: "y".'],
    [['explain', 'GET'], 'Missing after "explain GET": PATH.'],
    [['generate-secret', 'a', 'b'], 'Not understood: "b".'],
    [['check', 'x'], 'Not understood: "x". If that is the config folder, write --config x.'],
    [['maintenance', 'begin'], 'Give --until TIME.'],
    [['sessions', 'close'], 'Give USER, or --id ID, or --name NAME, or --everyone.'],
    [['sessions', 'close', '--source', 'x'], 'Give USER, or --id ID, or --name NAME.'],
    [['presets', 'show'], 'Give PRESET, or --merged.'],
    [['why'], 'Give REQUEST-ID, or --user NAME, or --last N.'],
    [['why', '--status', 'failed'], 'Give --user NAME, or --last N.'],
    [['lockouts', 'lift', 'alice'], 'Not understood: "alice".'],
    [['lockouts', 'lift'], 'Give --account NAME, or --address IP.']
  ] as const) {
    t.equal(refusal(...words), message, words.join(' '))
  }
  t.end()
})

t.test('what each way needs and takes is taken', t => {
  for (const line of [
    'maintenance',
    'maintenance show --json --url http://x',
    'maintenance begin --until 1h --route a --route b --allow-role c',
    'audit verify --folder y --key-file z --json',
    'limits --url http://x --json',
    'limits show anna --json',
    'sessions close s --id 1 --source x --json',
    'why --user x --last 3',
    '--config x plan new'
  ]) {
    t.equal(refusal(...line.split(' ')), 'taken', line)
  }
  t.end()
})

t.test('a wrong option ends with exit code 2 and the usage, before anything is done', async t => {
  const { code, out, err } = await run(['maintenance', 'end', '--message', 'x', '-c', 'none'])
  t.same({ code, out }, { code: 2, out: '' })
  t.match(err, 'Usage: console-gateway maintenance [show] [--json]')
})

t.test('every option of a command stands in a way, and its help in lines of a terminal', t => {
  for (const [name, command] of all) {
    const named = waysOf(command).flatMap(({ needs = [], takes = [] }) => [...needs, ...takes])
    for (const option of Object.keys(command.options ?? {})) {
      t.ok(named.includes(option), `${name} --${option}`)
    }
    const [usage = ''] = usageOf(name, command).split('\n\n').slice(1)
    for (const line of usage.split('\n')) t.ok(line.length <= 100, line)
  }
  t.end()
})

t.test('the help says which subcommands take an option', t => {
  const help = usageOf('maintenance', commands.maintenance)
  t.match(help, /^ +console-gateway maintenance begin /m)
  t.match(help, /--message TEXT +begin: /)
  t.end()
})

/** The command lines of a text, with what may be left out, and without their output's way. */
function commandLines(text: string): string[] {
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split(/\n|&&|\||\$\(|<\(/)
    .flatMap(line => /^\s*(?:[A-Z_]+=\S+ )*(?:npx )?console-gateway (.*)/.exec(line)?.[1] ?? [])
    .map(line => line.replace(/\s+#.*|\s*[>)].*/, '').replaceAll(/[[\]]/g, ''))
}

/** Words as a shell splits them. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []
  return words.map(word => word.replaceAll(/['"]/g, ''))
}

t.test('each command line of the help and of the documentation is one way', t => {
  const documents = globSync(['README.md', 'docs/**/*.md', 'deploy/**/*.md'])
  const blocks = documents.flatMap(blocksOf).filter(({ language }) => language === 'sh')
  const texts = [...all.map(([, { details = '' }]) => details), ...blocks.map(({ text }) => text)]
  const lines = texts.flatMap(commandLines)
  t.ok(lines.length > 80, `${lines.length} command lines`)
  for (const line of lines) t.equal(refusal(...wordsOf(line)), 'taken', line)
  t.end()
})
