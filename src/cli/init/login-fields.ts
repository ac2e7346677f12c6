/** The members of a sign-in body with the user name and the password, by their names. */

export interface LoginFields {
  readonly username: string
  readonly password: string
}

const passwordName = /^(pass(word|wd|code|phrase)?|pwd|secret)$/i
/** The most likely first. */
const usernameNames = [
  /^(user_?name|login(_?name)?|account(_?name)?|identifier)$/i,
  /^(e?-?mail|user|user_?id|phone|mobile)$/i,
  /user|login|account|mail|phone|mobile|^name$/i
]

/** Undefined for a body that is not that of a sign-in. */
export function loginFields(names: readonly string[]): LoginFields | undefined {
  const password = names.find(name => passwordName.test(name))
  if (password === undefined) return undefined
  for (const pattern of usernameNames) {
    const username = names.find(name => pattern.test(name) && name !== password)
    if (username !== undefined) return { username, password }
  }
  return undefined
}
