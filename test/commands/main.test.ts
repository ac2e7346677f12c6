import t from 'tap'
import type { Command } from '../../src/commands/command.ts'
import { commands } from '../../src/commands/index.ts'
import { run } from '../support/command.ts'

t.test('--help names every command and every exit code', async t => {
  for (const words of [['--help'], ['help']]) {
    const { code, out, err } = await run(words)
    t.match({ code, err }, { code: 0, err: '' })
    t.match(out, 'Usage: console-gateway COMMAND')
    for (const name of Object.keys(commands)) t.match(out, new RegExp(`^ {2}${name} +\\S`, 'm'))
    t.match(out, /Exit codes: 0 .*1 .*2 /)
  }
})

t.test('--help behind a command says how to call it', async t => {
  const { code, out } = await run(['sessions', '-h'])
  t.equal(code, 0)
  t.match(out, 'Usage: console-gateway sessions list USER-ID [--json]\n       console-gateway sessions close')
  t.match(out, /--everyone +all sessions/)
})

t.test('a command that there is not is said to be so, with the usage; the exit code is 2', async t => {
  for (const name of ['strat', 'constructor', '']) {
    const { code, out, err } = await run([name])
    t.same({ code, out }, { code: 2, out: '' }, name)
    t.match(err, `There is no command "${name}".\n\nUsage:`)
  }
})

t.test('an option that there is not, or that lacks its value, is said to be so; the exit code is 2', async t => {
  for (const words of [['check', '--confg', 'x'], ['check', '--config'], ['check', '--check=yes']]) {
    const { code, out, err } = await run(words)
    t.same({ code, out }, { code: 2, out: '' }, words.join(' '))
    t.match(err, 'Usage: console-gateway')
    t.notMatch(err, /^ +at /m)
  }
})

t.test('the reference is what the schemas say', async t => {
  t.same(await run(['reference', '--check']), { code: 0, out: '', err: '' })
})

t.test('every command’s help has an example and says what it is for', t => {
  for (const [name, { summary, details }] of Object.entries(commands as Readonly<Record<string, Command>>)) {
    t.ok(summary.length > 10, name)
    t.match(details, /Examples?:\n {2}\S/, name)
  }
  t.end()
})
