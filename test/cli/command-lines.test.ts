/** Nothing of a command line is ignored; those of the documentation are taken; tab completes. */
import { execFile } from 'node:child_process'
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { CliCommand } from '../../src/cli/cli-command.ts'
import { createProgram } from '../../src/cli/main.ts'
import { run } from '../support/command.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** What is refused, and why. */
const refused = `
strat: There is no command "strat". Did you mean "start"?
constructor: There is no command "constructor".
rollback: There is no command "rollback".
check --confg x: unknown option '--confg'
check x: Not understood: "x". If that is the config folder, write --config x.
check --strit: (Did you mean --strict?)
openapi --json: unknown option '--json'
reload --all: unknown option '--all'
reload x: Not understood: "x".
maintenance ends: There is no command "maintenance ends". Did you mean "end"?
maintenance begin: required option '--until <time>' not specified
maintenance end --message x: unknown option '--message'
maintenance end --method GET: unknown option '--method'
maintenance --until 30m: unknown option '--until'
maintenance show --message x: unknown option '--message'
sessions lst: (Did you mean list?)
sessions list 1 more: Not understood: "more".
sessions list --everyone: unknown option '--everyone'
sessions list --source x: Give USER.
sessions forget 1: unknown command 'forget'
sessions close: Give USER, or --everyone.
sessions close --source x: Give USER, or --everyone.
sessions close x --everyone: Give USER, or --everyone.
sessions close --everyone --by id: Give USER, or --everyone.
sessions close x --yes: Give USER, or --everyone.
limits show: missing required argument 'caller'
limits show x y: Not understood: "y".
limits reset: missing required argument 'caller'
limits shwo x: There is no command "limits shwo". Did you mean "show"?
explain GET: missing required argument 'path'
generate-secret a b: Not understood: "b".
generate-secret --json: unknown option '--json'
presets show: missing required argument 'preset'
presets show drf --json: unknown option '--json'
plan new --url http://x: Give NEW-DIR, or --url URL.
start --last-good: --last-good goes with --state.
why x --user y: REQUEST-ID stands alone.
why x --status failed: REQUEST-ID stands alone.
why x y: Not understood: "y".
schemas x: Not understood: "x".
users block: missing required argument 'user'
users block a b: Not understood: "b".
users blocked alice: Not understood: "alice".
users set-password x --role y: unknown option '--role'
users add carol --url http://x: unknown option '--url'
lockouts lift alice: Not understood: "alice".
lockouts lift: Give --account NAME, or --address IP.
`
  .trim()
  .split('\n')
  .map(row => /^(.*?): (.*)$/.exec(row) ?? [])

t.test('words and options that are too few, too many, unknown or at odds are refused', async t => {
  for (const [, line = '', message = ''] of refused) {
    const { code, out, err } = await run(`${line} -c none`.split(' '))
    t.same({ code, out }, { code: 2, out: '' }, line)
    t.match(err, message, line)
    t.match(err, '\nUsage: console-gateway ', line)
  }
})

t.test('no message repeats what may be a password', async t => {
  for (const line of [
    'hash-password hunter2',
    'users hunter2',
    'users add alice hunter2',
    'users set-password alice hunter2',
    'users add alice --password=hunter2',
    'users add alice -phunter2'
  ]) {
    const { code, out, err } = await run(line.split(' '))
    t.same({ code, out }, { code: 2, out: '' }, line)
    t.notMatch(err, 'hunter2', line)
  }
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

t.test('each command line of the help and of the documentation is taken', async t => {
  const documents = globSync(['README.md', 'docs/**/*.md', 'deploy/**/*.md'])
  const blocks = documents.flatMap(blocksOf).filter(({ language }) => language === 'sh')
  const names = createProgram({ io: process, exitCode: 0 }).commands.map(each => each.name())
  const helps = await Promise.all(names.map(name => run([name, '--help'])))
  const texts = [...helps.map(({ out }) => out), ...blocks.map(({ text }) => text)]
  const lines = texts.flatMap(commandLines).filter(line => !/^[^ ]+ \[options\]/.test(line))
  t.ok(lines.length > 60, `${lines.length} command lines`)
  for (const line of lines) {
    await t.resolves(parse(wordsOf(line)), line)
  }
})

/** @throws for words that are not taken; nothing is run */
async function parse(words: readonly string[]): Promise<void> {
  const program = createProgram({ io: process, exitCode: 0 })
  const prepare = (command: CliCommand): void => {
    command.allowExcessArguments(false)
    if (command.commands.length === 0) command.action(() => {})
    for (const each of command.commands) prepare(each as CliCommand)
  }
  prepare(program)
  await program.parseAsync(words, { from: 'user' })
}

t.test('in a real bash, tab completes commands, subcommands and options', async t => {
  const file = join(temporaryFolder(), 'completion.bash')
  writeFileSync(file, (await run(['completion', 'bash'])).out)
  const lines = [
    ['ex', 'explain|'],
    ['sessions ""', /^list\|close\|--help\|/],
    ['sessions list alice --s', '--source|'],
    ['-c folder check --s', '--strict|'],
    ['maintenance begin --until 1h --m', '--message|--method|'],
    ['explain GET / --answer ./an', '|']
  ] as const
  const script = `source ${file}
complete -p console-gateway
try () { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _console_gateway; printf '%s|' "\${COMPREPLY[@]}"; echo; }
${lines.map(([words]) => `try console-gateway ${words}`).join('\n')}`
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', script])
  t.equal(stderr, '')
  const [completed, ...found] = stdout.trimEnd().split('\n')
  t.equal(completed, 'complete -o bashdefault -o default -F _console_gateway console-gateway')
  for (const [index, [words, wanted]] of lines.entries()) t.match(found[index], wanted, words)
})

t.test('each shell has a script', async t => {
  const [zsh, bash] = [await run(['completion', 'zsh']), await run(['completion', 'bash'])]
  t.match(zsh, { code: 0, out: 'bashcompinit' })
  t.ok(zsh.out.endsWith(bash.out))
  const err = /Allowed choices are bash, zsh\./
  t.match(await run(['completion', 'tcsh']), { code: 2, err })
})
