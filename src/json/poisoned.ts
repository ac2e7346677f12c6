/** Finds members of clients' JSON that would replace a prototype when copied. */
import type { Json } from './values.ts'

/** Only texts with such a name, possibly escaped, are searched. */
const suspect = /__proto__|constructor|\\u/

/** the parsed `text` */
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
  const constructorValue = Object.getOwnPropertyDescriptor(value, 'constructor')?.value as Json
  return (
    typeof constructorValue === 'object' &&
    constructorValue !== null &&
    Object.hasOwn(constructorValue, 'prototype')
  )
}
