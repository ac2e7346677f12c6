/** Colours of a terminal; none if the output goes elsewhere or NO_COLOR is set. */
import { styleText } from 'node:util'
import type { Output } from './command.ts'

type Style = Parameters<typeof styleText>[0]

/** @param stream where the text goes */
export const paint = (style: Style, text: string, stream: Output): string =>
  styleText(style, text, { stream })
