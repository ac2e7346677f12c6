/** What npm reads of the project: package.json and package-lock.json. */
import { readFileSync } from 'node:fs'
import semver from 'semver'
import t from 'tap'

interface Package {
  readonly optional?: true
  readonly engines?: { readonly node?: string }
}

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as unknown
const root = readJson('package.json') as Package
const { packages } = readJson('package-lock.json') as {
  packages: Readonly<Record<string, Package>>
}

/** README promises that `npm ci` works there; everything after it runs on the Node that npm has just installed. */
const oldestNode = '20.19.0'

t.test('npm ci on Node 20 prints no EBADENGINE', t => {
  const refusing = Object.entries(packages).filter(
    ([, { engines, optional }]) =>
      optional !== true &&
      engines?.node !== undefined &&
      !semver.satisfies(oldestNode, engines.node)
  )
  t.same(
    refusing.map(([place]) => place),
    [],
    'delete `engines` of these in package-lock.json (CONTRIBUTING.md, "Packages")'
  )
  t.equal(root.engines, undefined, 'npm before 10.9 knows no devEngines, and would warn')
  t.end()
})
