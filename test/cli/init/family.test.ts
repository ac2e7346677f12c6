import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { familyOfFiles } from '../../../src/cli/init/family.ts'
import { newFolder } from '../../support/init.ts'

t.test('a family is known by its scripts; what is no readable file is passed over', t => {
  const folder = newFolder(t.after)
  mkdirSync(join(folder, 'assets', 'vendor.js'), { recursive: true })
  symlinkSync('nowhere', join(folder, 'gone.js'))
  symlinkSync('itself.js', join(folder, 'itself.js'))
  t.equal(familyOfFiles(folder), undefined)
  writeFileSync(join(folder, 'assets', 'vendor.js', 'a.mjs'), 'get("/captchaImage")')
  t.equal(familyOfFiles(folder), undefined, 'not all paths of the family')
  writeFileSync(join(folder, 'z.js'), 'get("/getRouters")')
  t.equal(familyOfFiles(folder), 'ruoyi')
  t.equal(familyOfFiles(join(folder, 'nowhere')), undefined)
  t.end()
})
