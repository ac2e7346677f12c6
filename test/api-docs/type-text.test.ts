import t from 'tap'
import { typeName, typeText } from '../../src/api-docs/type-text.ts'

t.test('what JSON Schema says is written as TypeScript says it', t => {
  for (const [schema, text] of [
    [{}, 'unknown'],
    [true, 'unknown'],
    [false, 'never'],
    [{ type: 'integer' }, 'number'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ enum: ['a', "it's", 'say "hi"', 1, null] }, `'a' | 'it\\'s' | 'say "hi"' | 1 | null`],
    [{ const: true }, 'true'],
    [{ type: 'array' }, 'unknown[]'],
    [{ type: 'array', items: { type: 'string' } }, 'string[]'],
    [{ type: 'array', items: { type: ['string', 'null'] } }, 'Array<string | null>'],
    [
      {
        type: 'array',
        minItems: 1,
        prefixItems: [{ type: 'string' }, { type: 'number' }],
        items: { type: 'boolean' }
      },
      '[string, number?, ...boolean[]]'
    ],
    [{ type: 'object' }, 'Record<string, unknown>'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, 'Record<string, number>'],
    [
      { properties: { 'a': { type: 'string' }, 'b-c': {} }, required: ['a'] },
      "{\n  a: string\n  'b-c'?: unknown\n}"
    ],
    [
      { properties: { a: { type: 'string', description: 'Ends */ here.' } } },
      '{\n  /** Ends * / here. */\n  a?: string\n}'
    ],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 'string | null'],
    [
      {
        allOf: [
          { $ref: '#/components/schemas/A' },
          { anyOf: [{ type: 'string' }, { type: 'null' }] }
        ]
      },
      'A & (string | null)'
    ],
    [{ $ref: '#/components/schemas/NoticesData/$defs/notice-item' }, 'NoticesDataNoticeItem']
  ] as const) {
    t.equal(typeText(schema), text, JSON.stringify(schema))
  }
  t.equal(typeName('#/components/schemas/A/definitions/API.Notice'), 'AAPINotice')
  t.end()
})
