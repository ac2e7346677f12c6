import { createCipheriv } from 'node:crypto'
import t from 'tap'
import { decryptPassword, type PasswordCipher } from '../../src/login/password-cipher.ts'

const encrypt = (password: string, { key, iv }: PasswordCipher) => {
  const mode = iv === undefined ? 'ecb' : 'cbc'
  const cipher = createCipheriv(`aes-${key.length * 8}-${mode}`, key, iv ?? null)
  return cipher.update(password, 'utf8', 'base64') + cipher.final('base64')
}

const ciphers: readonly PasswordCipher[] = [
  { key: '0123456789abcdef', iv: 'fedcba9876543210' },
  { key: '0123456789abcdef0123456789abcdef', iv: 'fedcba9876543210' },
  { key: '0123456789abcdef01234567' }
]

t.test('what a console encrypts is read, by the length of the key and with iv or without', t => {
  for (const cipher of ciphers) {
    for (const password of ['a', 'ä ö 密码', 'x'.repeat(500)]) {
      t.equal(decryptPassword(encrypt(password, cipher), cipher), password)
    }
  }
  t.end()
})

t.test('a text that is not encrypted, or with another key, stays as it is', t => {
  const [first, second] = ciphers
  if (first === undefined || second === undefined) throw new Error('no ciphers')
  for (const text of ['a', 'correct horse', '0123456789abcdef0123456789abcdef', '====']) {
    t.equal(decryptPassword(text, first), text)
  }
  const other = encrypt('secret of another console', second)
  t.equal(decryptPassword(other, first), other)
  t.end()
})
