/** What npm reads of the project: package.json, package-lock.json, and the versions of CHANGELOG.md. */
import { readFileSync } from 'node:fs'
import semver from 'semver'
import t from 'tap'

interface Package {
  readonly version: string
  readonly license?: string
  readonly optional?: true
  readonly optionalDependencies?: Readonly<Record<string, string>>
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

t.test('the lock file has an entry for every platform of a package, or npm ci refuses it', t => {
  const missing = Object.values(packages)
    .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
    .filter(name => !Object.keys(packages).some(place => place.endsWith(`node_modules/${name}`)))
  t.same(missing, [])
  t.end()
})

t.test('package.json, the lock file and CHANGELOG.md name one version and one licence', t => {
  const released = /^## (\d+\.\d+\.\d+)/m.exec(readFileSync('CHANGELOG.md', 'utf8'))
  t.equal(packages['']?.version, root.version)
  t.equal(released?.[1], root.version, 'the latest section of CHANGELOG.md')
  t.equal(packages['']?.license, root.license)
  t.match(readFileSync('LICENSE', 'utf8'), /Apache License\s+Version 2\.0/)
  t.end()
})
