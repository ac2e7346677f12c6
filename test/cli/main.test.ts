import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { PassThrough } from 'node:stream'
import { promisify } from 'node:util'
import t from 'tap'
import { createProgram } from '../../src/cli/main.ts'
import { table } from '../../src/cli/output.ts'
import { run, runProcess } from '../support/command.ts'

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
    err: 'gateway.yaml the file cannot be read'
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
  const columns = { USER: ([user = '']: string[]) => user, ID: ([, id = '']: string[]) => id }
  const rows = [
    ['张三丰', '1'],
    ['alice', '2']
  ]
  t.equal(table(rows, columns, new PassThrough()), 'USER    ID\n张三丰  1\nalice   2\n')
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
