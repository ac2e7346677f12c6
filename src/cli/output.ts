/** The output of commands: for people, and for programs. */
import { styleText } from 'node:util'
import { escapeInJson } from '../observability/unprintable.ts'
import type { Output } from './command.ts'

/** JSON for programs, and for terminals that would obey what clients put into names and paths. */
export function jsonText(value: unknown): string {
  return `${escapeInJson(JSON.stringify(value, null, 2))}\n`
}

/**
 * Colours of a terminal; none if the output goes elsewhere or NO_COLOR is set.
 * @param stream where the text goes
 */
export function paint(
  style: Parameters<typeof styleText>[0],
  text: string,
  stream: Output
): string {
  return styleText(style, text, { stream })
}
