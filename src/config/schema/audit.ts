/** `audit` of `gateway.yaml`: the ledger of who did what. */
import { type Static, Type } from 'typebox'
import { lifetime, list, named, oneOf, optional, pairs, secret, size, text } from './primitives.ts'

/** The written form of a member's value: as it is, its last four characters, or its HMAC. */
const howToShow = oneOf(
  ['plain', 'last4', 'hash'],
  '`plain`: the value. `last4`: its last four characters. `hash`: a keyed hash, to find equal ' +
    'values without showing them.'
)

const day = 86_400_000

const key = Type.Union(
  [
    secret('At least 32 characters.'),
    list(secret('At least 32 characters.'), 'To rotate the key: the new one first.', {
      minItems: 1,
      format: 'x-one-or-many'
    })
  ],
  {
    expected: 'a reference, ${NAME} or file:PATH, or a list of them',
    description:
      'The key that signs the lines, at least 32 characters. Who has it can forge lines: give it ' +
      'to the gateway and to who verifies. To rotate it, write a list with the new key first. ' +
      'Keep former keys as long as files that they signed. `console-gateway generate-secret` ' +
      'makes one.',
    examples: ['${AUDIT_KEY}', 'file:/run/secrets/audit-key']
  }
)

export const audit = optional(
  {
    to: oneOf(
      ['files', 'stdout'],
      '`files`: into `folder`. `stdout`: to standard output, among the lines of the log, for who ' +
        'collects that.',
      { default: 'files' }
    ),
    folder: text(
      'The folder of the ledger’s files, relative to the config folder. Several processes may ' +
        'share it. It must survive restarts of a container.',
      { default: 'audit', examples: ['/var/lib/console-gateway/audit'] }
    ),
    key: Type.Unsafe<readonly string[]>(key),
    maxSize: size(
      'A file that reaches this size, or is a day old, is closed, and the next one begins.',
      { default: '64MiB', minimum: 4096 }
    ),
    keep: lifetime(
      'Files that were last written longer ago are deleted. A line of the ledger then names them, ' +
        'so that `audit verify` can tell them from missing ones. `0s`: nothing is deleted.',
      { default: '0s', minimum: 0, maximum: 3700 * day, examples: ['365d'] }
    ),
    fields: named(
      pairs(howToShow, 'Members of the body, as names joined by dots.', {
        minProperties: 1,
        maxProperties: 16
      }),
      'By route: members of request bodies (JSON or form, up to 64 KiB) that the ledger ' +
        'records. Never name passwords or tokens. Values are cut to 256 characters.',
      {
        keysName: 'route in the ledger',
        examples: [{ 'orders-write': { 'amount': 'plain', 'customer.iban': 'last4' } }]
      }
    )
  },
  'The audit ledger: a signed line for each sign-in, each request that may change something, and ' +
    'each act of an operator. Without this section there is none.'
)

export type AuditConfig = NonNullable<Static<typeof audit>>
/** The steps of a member's name, such as `customer.iban`. */
export const memberPathOf = (name: string): string[] => name.split('.')

export type HowToShow = AuditConfig['fields'][string][string]
