import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { run } from '../support/command.ts'
import { temporaryFolder } from '../support/temporary.ts'

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
