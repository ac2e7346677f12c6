/** Bodies that the public endpoints take: one schema each, which validates and is published. */
import type { JsonSchema } from '../../contract/schema.ts'
import type { GatewayConfig } from './gateway.ts'

type LoginFields = GatewayConfig['login']['fields']

/** Sign-in. Other members are passed to the credential sources as they are. */
export function loginBody({ username, password, remember }: LoginFields): JsonSchema {
  const texts = {
    [username]: { type: 'string', minLength: 1, maxLength: 255 },
    [password]: { type: 'string', minLength: 1, maxLength: 1024 }
  }
  const flag = {
    type: ['boolean', 'null'],
    description: 'Whether the cookie outlives the browser.'
  }
  return {
    type: 'object',
    // Should config give two members one name, the texts stay texts.
    properties: { ...texts, [remember]: flag, ...texts },
    required: [username, password]
  }
}

const maxIdLength = 64

/** Closing sessions: one of the three is needed; the first that is set counts. */
export const closeBody: JsonSchema = {
  anyOf: [
    { type: 'object', properties: { id: { type: 'string', minLength: 1 } }, required: ['id'] },
    { type: 'object', properties: { others: { const: true } }, required: ['others'] },
    { type: 'object', properties: { all: { const: true } }, required: ['all'] }
  ],
  not: { properties: { id: { type: 'string', minLength: maxIdLength + 1 } }, required: ['id'] }
}
