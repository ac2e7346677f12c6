/** References to `$anchor` as references by place, which is all that the other readers know. */
import { isRecord, type JsonSchema } from './closed-schema.ts'

/** The first of equal anchors counts. What names no anchor stays, and is a fault of the schema. */
export function withoutAnchors(schema: JsonSchema): JsonSchema {
  const pointers = new Map<string, string>()
  collectAnchors(schema, '#', pointers)
  return pointers.size === 0 ? schema : (withPointers(schema, pointers) as JsonSchema)
}

function collectAnchors(value: unknown, pointer: string, pointers: Map<string, string>): void {
  if (typeof value !== 'object' || value === null) return
  const anchor = isRecord(value) ? value['$anchor'] : undefined
  if (typeof anchor === 'string' && !pointers.has(`#${anchor}`)) {
    pointers.set(`#${anchor}`, pointer)
  }
  for (const [name, member] of Object.entries(value)) {
    const escaped = encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'))
    const step = escaped.replaceAll('%24', '$')
    collectAnchors(member, `${pointer}/${step}`, pointers)
  }
}

function withPointers(value: unknown, pointers: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map(item => withPointers(item, pointers))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      if (typeof member !== 'string') return [[name, withPointers(member, pointers)]]
      if (name === '$anchor') return []
      return [[name, name === '$ref' ? (pointers.get(member) ?? member) : member]]
    })
  )
}
