import { jwtVerify } from 'jose'

const secret = Buffer.from(process.env.JWT_SECRET)
const expected = { algorithms: ['HS256'], issuer: 'console-gateway', audience: 'orders' }
const { payload } = await jwtVerify(process.argv[2], secret, { ...expected, clockTolerance: 5 })
console.log(payload.preferred_username)
