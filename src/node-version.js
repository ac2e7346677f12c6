/** Runs before anything else, in plain JavaScript: a Node that is too old gets a clear line and not a syntax error. */
const needed = 24
const [major] = process.versions.node.split('.')
if (Number(major) < needed) {
  process.stderr.write(
    `console-gateway needs Node ${needed} or newer; this is ${process.version}. ` +
      'In a clone, `npm ci` brings one (without --ignore-scripts), and npm scripts use it. ' +
      'Elsewhere, install Node.js 24 (https://nodejs.org).\n'
  )
  process.exit(1)
}
