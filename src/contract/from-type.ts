/**
 * Turns a TypeScript type into a JSON Schema. The generator is large and only for developers: it is
 * loaded on demand, and a production install leaves it out.
 */
import type { JsonSchema } from '../json-schema/closed-schema.ts'

/** Its message is for the developer. */
export class TypeFault extends Error {}

/** @param project a tsconfig.json, for types that import others by its paths */
export async function schemaFromType(
  file: string,
  type: string,
  project?: string
): Promise<JsonSchema> {
  const { createGenerator } = await generator()
  try {
    // New members do not break a contract, so objects stay open.
    const options = {
      path: file,
      type,
      expose: 'all',
      topRef: false,
      skipTypeCheck: true,
      additionalProperties: true,
      ...(project !== undefined && { tsconfig: project })
    } as const
    const { $schema: _, ...schema } = createGenerator(options).createSchema(type)
    return {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      ...(modern(schema) as JsonSchema)
    }
  } catch (error) {
    throw new TypeFault(`${file}: ${error instanceof Error ? error.message : String(error)}.`)
  }
}

async function generator(): Promise<typeof import('ts-json-schema-generator')> {
  try {
    return await import('ts-json-schema-generator')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new TypeFault(
      'This needs the packages ts-json-schema-generator and typescript, which a production install leaves out: run it in a checkout of the gateway after `npm ci`, and put the file it writes beside the config.'
    )
  }
}

/** Rewrites tuples of draft-07 for 2020-12. */
function modern(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(modern)
  if (typeof value !== 'object' || value === null) return value
  const { items, additionalItems, ...rest } = Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, modern(member)])
  )
  if (!Array.isArray(items)) {
    return {
      ...rest,
      ...(items !== undefined && { items }),
      ...(additionalItems !== undefined && { additionalItems })
    }
  }
  return {
    ...rest,
    prefixItems: items,
    ...(additionalItems !== undefined && { items: additionalItems })
  }
}
