/** Colours of a terminal; none if the output goes elsewhere or NO_COLOR is set. */
import { styleText } from 'node:util'

type Style = Parameters<typeof styleText>[0]

export const paint = (
  style: Style,
  text: string,
  stream: NodeJS.WriteStream = process.stdout
): string => styleText(style, text, { stream })
