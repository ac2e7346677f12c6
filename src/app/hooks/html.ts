/** HTML as text. The only place that escapes; attributes are quoted in the templates. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Content = Html | string | number | false | null | undefined | readonly Content[]

export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(parts.map((part, index) => part + render(values[index])).join(''))
}

function render(value: Content): string {
  if (value instanceof Html) return value.text
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'object') return value.map(render).join('')
  return String(value).replaceAll(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`)
}
