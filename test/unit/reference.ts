/**
 * What docs/shaping.md says of operations that take values from one place to another, plain and
 * slow; `convert`, `open` and `status` are in the tables of shape.test.ts. Nothing changes its
 * input: every operation builds new objects along the path that it changes, by `{ ...object }` and
 * Object.fromEntries, which make own members of all names.
 */

export type Step = Record<string, any>
export interface Given {
  shapes: Record<string, Step[]>
  wrap: (data: unknown, extra?: Record<string, unknown>, placement?: 'data' | 'flat') => unknown
  query: string
  paging?: { page: string; size?: string }
}
type Members = Record<string, unknown>

export function reference(steps: Step[], value: unknown, given: Given): unknown {
  for (const step of steps) value = apply(step, value, given)
  return value
}

function apply(step: Step, value: unknown, given: Given): unknown {
  const [name, argument] = Object.entries(step)[0]!
  switch (name) {
    case 'unwrap':
      return read(value, argument) ?? null
    case 'lift':
      return lift(value, argument.split('.'))
    case 'nest':
      return nest(argument, value)
    case 'use':
      return reference(
        Object.hasOwn(given.shapes, argument) ? given.shapes[argument]! : [],
        value,
        given
      )
    case 'each':
      return Array.isArray(value)
        ? value.map(item => reference(argument, item, given))
        : isObject(value) && Object.keys(value).length > 0
          ? reference(argument, value, given)
          : value
    case 'at': {
      const found = read(value, argument.path)
      return found === undefined
        ? value
        : replaced(value, argument.path.split('.'), () =>
            reference(argument.operations, found, given)
          )
    }
    case 'paging':
      return page(argument, value, given)
    case 'wrap': {
      if (argument === 'envelope') return given.wrap(value)
      if (argument === 'flat') return given.wrap(value, undefined, 'flat')
      const list = toList(value)
      return given.wrap(list, { total: list.length })
    }
  }
  // The others change the members of an object, and nothing else.
  if (!isObject(value)) return value
  switch (name) {
    case 'pick':
      return Object.fromEntries(
        Object.entries(value).filter(([member]) => argument.includes(member))
      )
    case 'drop':
      return Object.fromEntries(
        Object.entries(value).filter(([member]) => !argument.includes(member))
      )
    case 'rename':
      return rename(argument, value)
    case 'move':
      return move(argument, value)
    case 'default':
      return changed(value, argument, (old, preset) => old ?? preset)
    case 'constant':
      return changed(value, argument, (_, preset) => preset)
    case 'map':
      return changed(value, argument, (old, table) =>
        old === undefined ? undefined : mapped(old, table)
      )
    case 'echo': {
      const query = new URLSearchParams(given.query)
      let result = value
      for (const [member, parameter] of [
        [argument.page, given.paging?.page],
        [argument.size, given.paging?.size]
      ]) {
        const sent = parameter === undefined ? null : query.get(parameter)
        if (sent !== null && /^\d{1,15}$/.test(sent)) {
          result = withMember(result, member, Number(sent))
        }
      }
      return result
    }
  }
  return value
}

// Members and paths. Only objects have members: lists and texts have none, not even '0' or 'length'.

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function own(value: unknown, member: string): unknown {
  return isObject(value) && Object.hasOwn(value, member) ? value[member] : undefined
}

/** undefined: it does not exist. A path goes through lists too, by index. */
function read(value: unknown, path: string): unknown {
  for (const member of path.split('.')) {
    value =
      Array.isArray(value) && Object.hasOwn(value, member)
        ? (value as any)[member]
        : own(value, member)
  }
  return value
}

/** Whatever is no object on the path becomes one. */
function write(value: unknown, path: string[], content: unknown): unknown {
  if (path.length === 0) return content
  const object = isObject(value) ? value : {}
  return { ...object, [path[0]!]: write(own(object, path[0]!), path.slice(1), content) }
}

/** As `write`, also through lists; the length of a list is no place. */
function replaced(value: unknown, path: string[], content: () => unknown): unknown {
  if (path.length === 0) return content()
  const member = path[0]!
  const rest = (inner: unknown) => replaced(inner, path.slice(1), content)
  if (!Array.isArray(value)) return write(value, [member], rest(own(value, member)))
  return member === 'length'
    ? value
    : value.map((item, index) => (String(index) === member ? rest(item) : item))
}

/** Each member that `settings` names gets what `change` makes of it; undefined leaves it out. */
function changed(
  value: Members,
  settings: Members,
  change: (old: unknown, setting: any) => unknown
): Members {
  let result = value
  for (const [member, setting] of Object.entries(settings)) {
    const now = change(own(value, member), setting)
    if (now !== undefined) result = withMember(result, member, now)
  }
  return result
}

function withMember(object: Members, member: string, value: unknown): Members {
  return { ...object, [member]: value }
}

function without(object: Members, member: string): Members {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== member))
}

function toList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value
  if (value === null || value === undefined || value === '') return []
  if (isObject(value) && Object.keys(value).length === 0) return []
  return [value]
}

// The operations.

/** undefined for what has no text: a list or an object. */
function textOf(value: unknown): string | undefined {
  return typeof value === 'object' && value !== null ? undefined : String(value)
}

/** All at once: `{ a: b, b: a }` swaps. */
function rename(names: Record<string, string>, value: Members): Members {
  const found = Object.entries(names).filter(([from]) => Object.hasOwn(value, from))
  let result = value
  for (const [from] of found) result = without(result, from)
  for (const [from, to] of found) result = { ...result, [to]: value[from] }
  return result
}

/** All at once: values are taken out, inner ones first, and then put in, outer places first. */
function move(paths: Record<string, string>, value: unknown): unknown {
  const length = (path: string) => path.split('.').length
  const whole = value
  const taken: { from: string; to: string; content: unknown }[] = []
  for (const [from, to] of Object.entries(paths).sort(([a], [b]) => length(b) - length(a))) {
    const names = from.split('.')
    const holder = names.length === 1 ? value : read(value, names.slice(0, -1).join('.'))
    const content = own(holder, names.at(-1)!) // an item of a list stays where it is
    if (content === undefined) continue
    taken.push({ from, to, content })
    value = replaced(value, names.slice(0, -1), () => without(holder as Members, names.at(-1)!))
  }
  for (const { from, to, content } of taken.sort((a, b) => length(a.to) - length(b.to))) {
    // A text, a number or a list on the new path is no place: then the value stays where it was.
    if (!hasPlace(value, to.split('.'))) {
      return move(
        Object.fromEntries(Object.entries(paths).filter(([other]) => other !== from)),
        whole
      )
    }
    value = write(value, to.split('.'), content)
  }
  return value
}

function hasPlace(value: unknown, path: string[]): boolean {
  if (path.length === 0) return true
  if (!isObject(value)) return false
  return hasPlace(own(value, path[0]!) ?? {}, path.slice(1))
}

/** The object goes first, so it is no member of its holder any more when its own members go up. */
function lift(value: unknown, path: string[]): unknown {
  const before = path.slice(0, -1)
  const holder = before.length === 0 ? value : read(value, before.join('.'))
  const inner = own(holder, path.at(-1)!)
  if (!isObject(holder) || !isObject(inner)) return value
  return replaced(value, before, () => ({ ...inner, ...without(holder, path.at(-1)!) }))
}

function nest(argument: any, value: unknown): unknown {
  if (argument.count === undefined) return { [argument.as]: value }
  const list = toList(value)
  return { [argument.as]: list, [argument.count]: list.length }
}

function page(argument: any, value: unknown, given: Given): unknown {
  const number = (path: string | undefined): number | undefined => {
    const found = path === undefined ? undefined : read(value, path)
    return /^\d{1,15}$/.test(textOf(found) ?? '') ? Number(found) : undefined
  }
  const rows = toList(read(value, argument.list)).map(row =>
    reference(argument.each ?? [], row, given)
  )
  const extra: Members = { total: number(argument.total) ?? rows.length }
  for (const member of ['current', 'pageSize']) {
    const found = number(argument[member])
    if (found !== undefined) extra[member] = found
  }
  return given.wrap(rows, extra)
}

function mapped(old: unknown, table: Members): unknown {
  const key = typeof old === 'object' && old !== null ? '*' : String(old)
  return Object.hasOwn(table, key) ? table[key] : Object.hasOwn(table, '*') ? table['*'] : old
}
