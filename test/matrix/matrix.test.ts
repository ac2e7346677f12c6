/**
 * Every console with every back-end: a gateway of its own for each pair, with nothing but the two
 * presets and the lines that an operator writes. Then every console with the preset of every other
 * one, which must not work.
 */
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { textFolder } from '../support/config-files.ts'
import { type BackendFamily, users } from './backend.ts'
import type { Driver } from './driver.ts'
import { backends, consoles } from './families.ts'
import { nodePage } from './node-page.ts'
import { countLines, pairFiles } from './pairs.ts'
import { type Expected, type Problem, type Step, useConsole } from './use-console.ts'

/** Guessing may go on, and what tests do in a second is not what users do in a minute. */
const limits = stringify({
  lockout: { account: { mode: 'off' }, address: { mode: 'off' } },
  limits: { 'signed-in': { by: 'user', max: 100_000, window: '1m' } }
})

/** The text of the gateway for a wrong password, where no text of the back-end takes its place. */
const wrongPassword = 'The user name or the password is wrong.'

const maxLines = 15

async function startPair(t: Test, console: Driver, family: BackendFamily) {
  const backend = await family.start(t.after)
  const files = pairFiles(console, family)
  const folder = textFolder(t.after, {
    'gateway.yaml': files.gateway,
    'routes.yaml': files.routes,
    'limits.yaml': limits
  })
  const gateway = await testGateway(t.after, folder, { BACKEND_URL: backend.url })
  return { gateway, lines: countLines(files) }
}

/** A page of this gateway whose time goes on as told. */
function pageOf(gateway: TestGateway) {
  let passed = 0
  const passTime = (ms: number) => {
    passed += ms
  }
  return { page: nodePage(gateway.url, () => Date.now() + passed), passTime }
}

function expectedOf(
  family: BackendFamily,
  gateway: TestGateway,
  passTime: Expected['passTime']
): Expected {
  const { admin } = users
  const { message, field } = family.save
  return {
    username: family.loginName(admin),
    password: admin.password,
    name: admin.name,
    wrongPassword: [family.wrongPassword, wrongPassword],
    refusal: [message],
    ...(field !== undefined && { field }),
    endSession: () => gateway.ops('/sessions/close', { json: { user: String(admin.id) } }),
    passTime
  }
}

/** Steps that need the errors of back-ends in the hands of consoles. */
const awaited: ReadonlySet<Step> = new Set(['refusal', 'field errors'])

const rows: string[] = []

for (const console of consoles) {
  for (const family of backends) {
    void t.test(`${console.name} × ${family.name}`, async t => {
      const { gateway, lines } = await startPair(t, console, family)
      const { page, passTime } = pageOf(gateway)
      const expected = expectedOf(family, gateway, passTime)
      const problems = await useConsole(console, page, expected, 'end')
      t.same(
        problems.filter(({ step }) => !awaited.has(step)),
        []
      )
      t.ok(lines <= maxLines, `${lines} lines of config`)
      rows.push(rowOf(console.name, family.name, problems, `${lines} lines`))
    })
  }
}

/** Consoles of two names that one preset serves, and why their sources say so. */
const alsoFits: Readonly<Record<string, string>> = {}

for (const console of consoles) {
  for (const preset of presetsOfKind('console').filter(name => name !== console.name)) {
    const [family] = backends
    if (family === undefined) continue
    void t.test(`${console.name} with the preset of ${preset}`, async t => {
      const { gateway } = await startPair(t, { ...console, name: preset }, family)
      const { page, passTime } = pageOf(gateway)
      const expected = expectedOf(family, gateway, passTime)
      const [problem] = await useConsole(console, page, expected, 'first problem')
      const reason = alsoFits[`${console.name} with ${preset}`]
      t.equal(problem === undefined, reason !== undefined, problem?.text ?? reason ?? 'it works')
      const how =
        problem === undefined ? `fits: ${reason}` : `refused as it should: ${problem.step}`
      rows.push(`${console.name.padEnd(18)} preset ${preset.padEnd(18)} ${how}`)
    })
  }
}

void t.test('the matrix', t => {
  for (const row of rows) t.comment(row)
  t.end()
})

function rowOf(console: string, family: string, problems: readonly Problem[], lines: string) {
  const state = problems.length === 0 ? 'works' : problems.map(({ step }) => step).join(', ')
  return `${console.padEnd(18)} × ${family.padEnd(14)} ${lines}  ${state}`
}
