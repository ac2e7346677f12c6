/** The command line: its help, what it refuses, what the documentation writes, what tab completes. */
import { execFile } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { promisify } from 'node:util'
import t from 'tap'
import type { CliCommand } from '../../src/cli/command.ts'
import { createProgram } from '../../src/cli/main.ts'
import { tableText } from '../../src/cli/output.ts'
import { run, runProcess } from '../support/command.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { temporaryFolder } from '../support/temporary.ts'

const names = createProgram({ io: process, exitCode: 0 }).commands.map(each => each.name())

/** A shell's line, where `node` is the Node that runs the tests. */
async function shell(line: string): Promise<{ stdout: string; stderr: string }> {
  const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` }
  return await promisify(execFile)('sh', ['-c', line], { env })
}

t.test('--help names every command and every exit code', async t => {
  for (const words of [['--help'], ['help']]) {
    const { code, out, err } = await run(words)
    t.same({ code, err }, { code: 0, err: '' })
    t.match(out, 'Usage: console-gateway COMMAND')
    t.match(out, /\nDaily:\n[^]*\nSet-up:\n[^]*\nExpert:\n/)
    for (const name of names) t.match(out, new RegExp(`^ {2}${name} +\\S`, 'm'))
    t.match(out, /Exit codes: 0 .*1 .*2 /)
  }
})

t.test('--help behind a command says how to call it, what it is for, and an example', async t => {
  for (const name of names) {
    const { out } = await run([name, '--help'])
    t.match(out, /\n\n\S.{9}[^]*Examples?:\n {2}\S/, name)
  }
  const { code, out } = await run(['sessions', '-h'])
  t.equal(code, 0)
  t.match(out, 'Usage: console-gateway sessions [options] [command]')
  const { out: ofClose } = await run(['sessions', 'close', '--help'])
  t.match(ofClose, 'Usage: console-gateway sessions close [options] [user] [session-id]')
  t.match(ofClose, /--everyone +all sessions/)
  for (const line of ofClose.split('\n')) t.ok(line.length <= 100, line)
})

t.test('--config may stand before the name of the command, or without one for start', async t => {
  const folder = t.testdir()
  t.match(await runProcess(['--config', `${folder}/none`]), {
    code: 1,
    err: ' is no folder. '
  })
  t.match(await run(['-c', `${folder}/none`, 'check']), { code: 1, err: `${folder}/none` })
})

t.test('--version says which gateway and which Node', async t => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  t.same(await run(['--version']), {
    code: 0,
    out: `console-gateway ${version} (Node ${process.version})\n`,
    err: ''
  })
})

t.test('a reader that has seen enough ends a command without a word', async t => {
  const { stdout, stderr } = await shell('node src/launch.js openapi --config config | head -c 10')
  t.same([stdout.length, stderr], [10, ''])
})

t.test('output that cannot be written is one line', async t => {
  const full = await shell('node src/launch.js --help > /dev/full; echo $?')
  t.same([full.stdout, full.stderr], ['1\n', 'The output could not be written (ENOSPC).\n'])
})

t.test('what a terminal would obey in a word or an option is shown', async t => {
  for (const words of [['\u001b]0;owned\u0007'], ['check', '--\u001b]0;owned\u0007']]) {
    const { code, err } = await run(words)
    t.equal(code, 2)
    t.match(err, '\\u001b]0;owned\\u0007')
    t.notMatch(err, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/)
  }
})

t.test('case R13: columns stand under each other where characters are wide', async t => {
  const lines = [
    ['USER', 'ID'],
    ['张三丰', '1'],
    ['alice', '2']
  ]
  const text = tableText(lines, new PassThrough())
  t.equal(text, 'USER    ID\n张三丰  1\nalice   2\n')
})

/** The files that a command loads, its packages included. */
async function loadedBy(...words: string[]): Promise<string[]> {
  const hook = `import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    process.on('exit', () => process.stderr.write('\\nloaded ' + JSON.stringify(urls)))`
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` }
  const { err } = await runProcess(words, { input: 'correct horse battery', env })
  const urls = JSON.parse(/^loaded (.*)$/m.exec(err)?.[1] ?? '') as string[]
  // What stands before it belongs to tap, which observes the processes of tests.
  return urls.slice(urls.findIndex(url => url.endsWith('/src/launch.js')))
}

const skip = process.env['PROGRAM'] !== undefined && 'a bundle does not name what it holds'

t.test('case R14: a command loads what it needs, not the gateway', { skip }, async t => {
  const folder = t.testdir({ 'gateway.yaml': 'ops: { listen: "127.0.0.1:1" }\n' })
  const packages = /\/node_modules\/(?!commander\/)/
  const gateway = /\/node_modules\/(fastify|ioredis|undici|pino)\/|\/src\/(app|process|proxy)\//
  for (const [line, unwanted] of [
    ['generate-secret', packages],
    ['hash-password', packages],
    ['--help', packages],
    [`status -c ${folder}`, gateway],
    [`sessions list -c ${folder}`, gateway],
    [`users add alice -c ${folder}`, gateway]
  ] as const) {
    const urls = await loadedBy(...line.split(' '))
    const found = urls.filter(url => unwanted.test(url))
    t.same(found, [], line)
  }
  t.ok((await loadedBy('check', '-c', folder)).some(url => gateway.test(url)))
})

/** What is refused, and why. */
const refused = `
strat: There is no command "strat". Did you mean "start"?
constructor: There is no command "constructor".
check --confg x: unknown option '--confg'
check x: One word too many.
check --strit: (Did you mean --strict?)
maintenance ends: There is no command "maintenance ends". Did you mean "end"?
maintenance begin: required option '--until <time>' not specified
maintenance --until 30m: unknown option '--until'
sessions lst: (Did you mean list?)
sessions list 1 more: One word too many.
sessions list --everyone: unknown option '--everyone'
sessions forget 1: unknown command 'forget'
limits show: missing required argument 'caller'
explain GET: missing required argument 'path'
plan new --url http://x: No gateway is asked
start --last-good: --last-good goes with --state.
users blocked alice: One word too many.
users add carol --url http://x: unknown option '--url'
lockouts lift alice: One word too many.
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
