/** Advice names config keys and commands that exist. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import errorAdvice from '../../src/errors/advice.json' with { type: 'json' }
import { run } from '../support/command.ts'

const quotedIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted)

t.test('each key that advice names stands in the reference', t => {
  const reference = readFileSync('docs/configuration.md', 'utf8')
  for (const [code, text] of Object.entries(errorAdvice)) {
    for (const quoted of quotedIn(text)) {
      if (/^(console-gateway|Authorization:)/.test(quoted) || quoted === 'from') continue
      const [key = ''] = quoted.split(': ')
      t.ok(reference.includes(`| \`${key}\` |`), `${code}: ${key}`)
    }
  }
  t.end()
})

t.test('each command that advice names exists', async t => {
  const commands = new Set(
    Object.values(errorAdvice).flatMap(text =>
      [...text.matchAll(/`console-gateway ([a-z]+(?: [a-z]+)?)/g)].map(([, words = '']) => words)
    )
  )
  t.ok(commands.size > 5)
  for (const command of commands) {
    const [name = '', second = ''] = command.split(' ')
    const { code, out } = await run([name, '--help'])
    t.equal(code, 0, name)
    t.ok(second === '' || out.includes(`console-gateway ${command}`), command)
  }
})
