/** The code blocks of the documentation, and how one is held against what really happens. */
import { readFileSync } from 'node:fs'

export interface Block {
  /** `README.md:27` */
  readonly place: string
  /** What stands behind the fence, such as `sh`. */
  readonly language: string
  readonly text: string
  /** Why it is not run: `<!-- not run: REASON -->` in the line before. */
  readonly notRun?: string
}

export function blocksOf(file: string): Block[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  const blocks: Block[] = []
  for (let index = 0; index < lines.length; index++) {
    const language = /^```(\w+)$/.exec(lines[index] ?? '')?.[1]
    if (language === undefined) continue
    const end = lines.indexOf('```', index)
    const notRun = /^<!-- not run: (.+) -->$/.exec(lines[index - 1] ?? '')?.[1]
    blocks.push({
      place: `${file}:${index + 1}`,
      language,
      text: lines.slice(index + 1, end).join('\n'),
      ...(notRun !== undefined && { notRun })
    })
    index = end
  }
  return blocks
}

/** A transcript of a terminal: commands after `$ `, each with what it prints, up to an empty line. */
export function exchangesOf(transcript: string) {
  return transcript.split('\n\n').map(part => {
    const [, command = '', expected = ''] = /^\$ ((?:[^\n]*\\\n)*[^\n]*)\n([^]*)$/.exec(part) ?? []
    return { command, expected }
  })
}

/** Whether a value is as it is written, where a text that ends in `…` stands for any text, and `…` in a list for any more. */
export function isAsWritten(written: unknown, found: unknown): boolean {
  if (typeof written === 'string' && written.endsWith('…')) {
    return typeof found === 'string' && found.startsWith(written.slice(0, -1))
  }
  if (Array.isArray(written)) {
    const items = written.filter(item => item !== '…')
    return (
      Array.isArray(found) &&
      items.every((item, index) => isAsWritten(item, found[index])) &&
      (items.length < written.length || items.length === found.length)
    )
  }
  if (typeof written === 'object' && written !== null) {
    if (typeof found !== 'object' || found === null) return false
    const names = new Set([...Object.keys(written), ...Object.keys(found)])
    return [...names].every(name =>
      isAsWritten(
        (written as Record<string, unknown>)[name],
        (found as Record<string, unknown>)[name]
      )
    )
  }
  return Object.is(written, found)
}
