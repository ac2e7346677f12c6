/** Advice names config keys and commands that exist, in both languages the same. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { errorAdvice } from '../src/error-advice.ts'
import { run } from './support/command.ts'

const quotedIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, quoted = '']) => quoted)

t.test('each key that advice names stands in the reference', t => {
  const reference = readFileSync('docs/configuration.md', 'utf8')
  for (const [code, { en }] of Object.entries(errorAdvice)) {
    for (const quoted of quotedIn(en)) {
      if (/^(console-gateway|Authorization:)/.test(quoted) || quoted === 'from') continue
      const [key = ''] = quoted.split(': ')
      t.ok(reference.includes(`| \`${key}\` |`), `${code}: ${key}`)
    }
  }
  t.end()
})

t.test('each command that advice names exists', async t => {
  const commands = new Set(
    Object.values(errorAdvice).flatMap(({ en }) =>
      [...en.matchAll(/`console-gateway ([a-z]+(?: [a-z]+)?)/g)].map(([, words = '']) => words)
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

t.test('the Chinese advice names the same keys', t => {
  for (const [code, { en, zh }] of Object.entries(errorAdvice)) {
    const keys = (text: string) =>
      quotedIn(text)
        .filter(each => each !== 'from')
        .toSorted()
    t.same(keys(zh), keys(en), code)
    t.match(zh, /[\u4e00-\u9fff]/, code)
  }
  t.end()
})
