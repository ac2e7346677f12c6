/** Paths of members in a response: all of them, and the best one by rules. */
import { isRecord, type Json } from '../../json/values.ts'
import { isMemberName } from './redaction.ts'

export interface Member {
  /** Dotted, such as `result.user.uid`. */
  readonly path: string
  readonly name: string
  readonly value: Json
  readonly depth: number
}

const maxDepth = 5
const maxMembers = 5000

/** All members of objects below a value, the nearest first; lists are not entered. */
export function membersOf(value: Json): Member[] {
  const members: Member[] = []
  let level: Array<{ readonly path: string; readonly value: Json }> = [{ path: '', value }]
  for (let depth = 1; depth <= maxDepth && level.length > 0; depth++) {
    const next: typeof level = []
    for (const holder of level) {
      if (!isRecord(holder.value)) continue
      for (const [name, member] of Object.entries(holder.value)) {
        if (!isMemberName(name) || name.includes('.') || members.length >= maxMembers) continue
        const path = below(holder.path, name)
        members.push({ path, name, value: member, depth })
        next.push({ path, value: member })
      }
    }
    level = next
  }
  return members
}

/** The members of an object itself, not of the objects in it. */
export function directMembers(value: Json): Member[] {
  return membersOf(value).filter(({ depth }) => depth === 1)
}

/** The first member that fits the first of these patterns, else of the second, and so on. */
export function firstNamed(
  members: readonly Member[],
  patterns: readonly RegExp[],
  fits: (value: Json) => boolean
): Member | undefined {
  for (const pattern of patterns) {
    const match = members.find(({ name, value }) => pattern.test(name) && fits(value))
    if (match !== undefined) return match
  }
  return undefined
}

export function parentOf(path: string): string {
  return path.includes('.') ? path.slice(0, path.lastIndexOf('.')) : ''
}

/** `a.b` below `a`; the path itself below the whole. */
export function below(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`
}

export function isText(value: Json): value is string {
  return typeof value === 'string' && value !== ''
}
