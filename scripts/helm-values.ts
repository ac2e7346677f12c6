/**
 * Writes the schema of the values of deploy/helm/console-gateway: `config` is described by the
 * schemas of the config files.
 */
import { writeFileSync } from 'node:fs'
import { isRecord } from '../src/json/values.ts'
import { schemaTexts } from '../src/config/schema/for-editors.ts'

const target = new URL('../deploy/helm/console-gateway/values.schema.json', import.meta.url)

type Schema = Readonly<Record<string, unknown>>

const text = { type: 'string' }
const flag = { type: 'boolean' }
const anything = { type: 'object' }
const texts = { type: 'object', additionalProperties: text }
const list = { type: 'array' }
const closed = (
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = []
) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties
})

/**
 * Helm has other expressions than JavaScript, so only those of references stay: the gateway itself
 * checks texts.
 */
function withoutPatterns(key: string, value: unknown): unknown {
  if (key === 'pattern' && typeof value === 'string' && !value.startsWith('\\$\\{')) {
    return undefined
  }
  if (!isRecord(value) || value['patternProperties'] === undefined) return value
  const { patternProperties, ...others } = value
  return { ...others, additionalProperties: Object.values(patternProperties as object)[0] }
}

const files = Object.fromEntries(
  Array.from(schemaTexts(), ([name, schema]) => [
    name,
    JSON.parse(schema, withoutPatterns) as Schema
  ])
)
const usersOf = ({ properties }: Schema) => (properties as { readonly users: Schema }).users
const config = {
  ...files,
  // An installation without such users is one, too.
  users: { ...usersOf(files['users'] ?? {}), minProperties: 0 }
}

const schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...closed(
    {
      image: closed({
        repository: text,
        tag: text,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
        pullSecrets: { type: 'array', items: text }
      }),
      replicas: { type: 'integer', minimum: 1 },
      config: closed(config, ['gateway', 'routes']),
      secret: { type: 'string', minLength: 1 },
      resources: anything,
      service: closed({
        type: { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
        port: { type: 'integer', minimum: 1, maximum: 65_535 }
      }),
      ingress: closed({
        enabled: flag,
        className: text,
        host: text,
        tls: text,
        annotations: texts
      }),
      networkPolicy: closed({ enabled: flag, from: list, operators: list }),
      pod: closed({
        annotations: texts,
        nodeSelector: texts,
        tolerations: list,
        topologySpreadConstraints: list
      }),
      // What helm itself adds.
      global: anything
    },
    ['config', 'secret']
  )
}

writeFileSync(target, `${JSON.stringify(schema)}\n`)
