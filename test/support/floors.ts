/** The gate of the house: floors import downward only, no cycles, no file outgrows its room. Fails when it saw nothing. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type ICruiseResult } from 'dependency-cruiser'

/** What each part of src may import from src, beside itself. Commands and main see everything. */
const mayImport: ReadonlyArray<readonly [part: string, from: string, allowed: string]> = [
  ['config and errors', '^src/(config/|errors)', '^src/(config/|errors)'],
  ['metrics', '^src/metrics', '^src/metrics'],
  ['the envelope', '^src/envelope', '^src/(config/|errors)'],
  ['session', '^src/session/', '^src/(config/|errors|metrics|session/)'],
  ['login', '^src/login/', '^src/(config/|errors|metrics|session/|login/)'],
  ['proxy', '^src/proxy/', '^src/(config/|errors|metrics|session/|proxy/)'],
  ['contract', '^src/contract/', '^src/(config/|errors|metrics|contract/)'],
  ['limits', '^src/limits/', '^src/(config/|errors|metrics|limits/)'],
  ['redis', '^src/redis', '^src/config/'],
  ['description', '^src/description/', '^src/(config/|errors|proxy/shape|description/)'],
  ['hooks', '^src/hooks/', '^src/(config/|errors|metrics|envelope|session/|login/|proxy/|limits/|hooks/)'],
  ['endpoints', '^src/endpoints/', '^src/(config/|errors|metrics|envelope|session/|login/|proxy/|limits/|hooks/)'],
  ['app, services, gateway', '^src/(app|services|routing|gateway)', '^src/(?!commands/|main|launch)']
]

const only = (name: string, from: string, packages: string) => ({ name, severity: 'error' as const, from: { path: '^src', pathNot: from }, to: { path: packages, dependencyTypesNot: ['type-only' as const] } })

const result = await cruise(['src'], {
  tsPreCompilationDeps: true,
  doNotFollow: { path: 'node_modules' },
  enhancedResolveOptions: { extensions: ['.ts', '.js'] },
  ruleSet: {
    forbidden: [
      { name: 'no cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
      ...mayImport.map(([part, from, allowed]) => ({ name: `${part} import only from below`, severity: 'error' as const, from: { path: from }, to: { path: '^src', pathNot: allowed } })),
      // Types may cross: they are gone at run time.
      only('Fastify runs on the upper floors only', '^src/(hooks|endpoints|app|gateway)', '^node_modules/(fastify|@fastify)/'),
      only('only the upstream opens sockets to back-ends', '^src/proxy/upstream', '^node_modules/undici/'),
      only('only redis.ts dials Redis', '^src/redis', '^node_modules/ioredis/')
    ]
  }
}, { validate: true } as never).catch((error: unknown) => { throw error })

const { summary, modules } = result.output as ICruiseResult
const sources = modules.filter(({ source }) => source.startsWith('src/'))
const problems = summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`)
if (sources.length < 30) problems.push(`only ${sources.length} modules were seen: the gate is blind`)

const longest = 220
const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(name => /\.(ts|js)$/.test(name))
for (const file of files) {
  const lines = readFileSync(join('src', file), 'utf8').split('\n')
  if (lines.length > longest) problems.push(`src/${file} has ${lines.length} lines, more than ${longest}: is it still one thing?`)
  if (!lines.some((line, index) => index < 2 && line.startsWith('/** '))) problems.push(`src/${file} does not open with a sentence that says what it owns`)
}

if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`)
  process.exit(1)
}
process.stdout.write(`floors: ${sources.length} modules, no import upward, no cycle\n`)
