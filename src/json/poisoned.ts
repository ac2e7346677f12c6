/** Finds members of clients' JSON that replace a prototype where they are copied. */
import type { Json } from './values.ts'

/** Only texts with such a name, escaped or not, are looked through. */
const suspect = /__proto__|constructor|\\u/

/** @param value what `text` says */
export function isPoisoned(text: string, value: Json): boolean {
  if (!suspect.test(text)) return false
  const waiting = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue
    if (replacesPrototype(next)) return true
    for (const member of Object.values(next)) waiting.push(member)
  }
  return false
}

function replacesPrototype(value: object): boolean {
  if (Object.hasOwn(value, '__proto__')) return true
  const own = Object.getOwnPropertyDescriptor(value, 'constructor')?.value as Json
  return typeof own === 'object' && own !== null && Object.hasOwn(own, 'prototype')
}
