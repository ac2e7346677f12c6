/** What docs/shaping.md says of operations that take values elsewhere, plain and slow. */

export type Step = Record<string, any>
type Members = Record<string, unknown>

/** @param used the steps of the shape that `use` names */
export function reference(steps: Step[], value: unknown, used: Step[] = []): unknown {
  for (const step of steps) value = apply(step, value, used)
  return value
}

function apply(step: Step, value: unknown, used: Step[]): unknown {
  const [name, argument] = Object.entries(step)[0]!
  switch (name) {
    case 'unwrap':
      return read(value, argument) ?? null
    case 'lift':
      return lift(value, argument.split('.'))
    case 'use':
      return reference(used, value)
    case 'each':
      return Array.isArray(value)
        ? value.map(item => reference(argument, item, used))
        : isObject(value) && Object.keys(value).length > 0
          ? reference(argument, value, used)
          : value
    case 'at': {
      const found = read(value, argument.path)
      const inner = () => reference(argument.operations, found, used)
      return found === undefined ? value : replaced(value, argument.path.split('.'), inner)
    }
  }
  // The others change the members of an object, and nothing else.
  if (!isObject(value)) return value
  const membersWhere = (fits: (member: string) => boolean) =>
    Object.fromEntries(Object.entries(value).filter(([member]) => fits(member)))
  switch (name) {
    case 'pick':
      return membersWhere(member => argument.includes(member))
    case 'drop':
      return membersWhere(member => !argument.includes(member))
    case 'rename':
      return rename(argument, value)
    case 'move':
      return move(argument, value)
  }
  throw new Error(`${name} is none of these`)
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

function without(object: Members, member: string): Members {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== member))
}

// The operations.

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
