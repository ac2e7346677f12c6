/** What a browser calls itself, in a few words. */

/** The first that fits: nearly all claim to be Chrome or Safari too. @type {[RegExp, string][]} */
const browsers = [
  [/\bEdg(?:A|iOS)?\//, 'Edge'],
  [/\b(?:OPR|OPX|Opera)\//, 'Opera'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:Headless)?Chrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari']
]

/** @type {[RegExp, string][]} */
const systems = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMacintosh\b|\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux']
]

/** Such as “Firefox on Windows”; else the name of the program, such as “curl”. */
export function browserName(/** @type {string} */ agent) {
  const find = (/** @type {[RegExp, string][]} */ known) =>
    known.find(([pattern]) => pattern.test(agent))?.[1]
  const browser =
    find(browsers) ?? (agent.startsWith('Mozilla/') ? undefined : /^[\w.-]+/.exec(agent)?.[0])
  const system = find(systems)
  if (browser === undefined) {
    return system === undefined ? 'Unknown browser' : `Browser on ${system}`
  }
  return system === undefined ? browser : `${browser} on ${system}`
}
