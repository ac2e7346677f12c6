/** What the gate of outside text has to see (`outside-text.ts`): a fault in each line that says so. */

/** Patterns that take quadratic time. */
export const patterns = [
  /[ \t]+$/, // fault
  /^(?:a+)+$/, // fault
  new RegExp(`${String(process.argv[2])}$`), // fault
  /^[ \t]+/
]

export const pieces = (text: string): string[] => text.split(',') // fault

export function countBlanks(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at++) {
    if (text[at] === ' ') count++ // fault
  }
  return count + text.indexOf(' ')
}

export const read = (text: string): unknown => JSON.parse(text) // fault
export const readBody = async (answer: Response): Promise<unknown> => await answer.json() // fault
export const write = (value: unknown): string => JSON.stringify(value)
