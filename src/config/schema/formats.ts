/** Formats of texts, for what a pattern cannot say. */
import { isIP } from 'node:net'
import { splitHostPort } from './host-port.ts'

/** @returns undefined for a text that has the format */
type Format = (written: string) => string | undefined

const unless = (isRight: boolean, expected: string) => (isRight ? undefined : expected)

const formats: Readonly<Record<string, Format>> = {
  'x-port': address => unless(splitHostPort(address).port <= 65_535, 'a port of at most 65535'),
  'x-addresses': block => unless(isBlock(block), 'an address or a CIDR block such as 10.0.0.0/8'),
  'x-url': url => unless(url === '' || URL.canParse(url), 'a valid URL'),
  'x-origin': origin => {
    if (!URL.canParse(origin)) return 'a valid URL such as https://console.example.com'
    const canonical = new URL(origin).origin
    return unless(canonical === origin, `the origin as browsers write it: ${canonical}`)
  }
}

export function expectationOfFormat(format: string | undefined, value: unknown) {
  return typeof value === 'string' ? formats[format ?? '']?.(value) : undefined
}

function isBlock(block: string): boolean {
  const [address = '', bits, ...rest] = block.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}
