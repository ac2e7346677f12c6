/** Texts of the panel Maintenance. */

export const maintenanceTexts = {
  'maintenance.title': ['Maintenance', '维护'],
  'maintenance.alone': [
    'Without Redis, maintenance begun here closes this process alone, until it restarts.',
    '未使用 Redis：在此开始的维护仅对本进程有效，重启后失效。'
  ],
  'maintenance.byPage': ['Begun by operators', '运维人员开始的维护'],
  'maintenance.byFile': ['In routes.yaml', 'routes.yaml 中的维护'],
  'maintenance.on': ['on', '进行中'],
  'maintenance.off': ['off', '未开启'],
  'maintenance.noneByPage': ['Operators closed nothing.', '运维人员没有关闭任何路由。'],
  'maintenance.noneByFile': ['The file closes nothing.', '配置文件没有关闭任何路由。'],
  'maintenance.routes': ['Routes', '路由'],
  'maintenance.allRoutes': ['all routes', '全部路由'],
  'maintenance.methods': ['Methods', '方法'],
  'maintenance.roles': ['Open for the roles', '以下角色不受影响'],
  'maintenance.until': ['Ends', '结束'],
  'maintenance.message': ['Message', '提示信息'],
  'maintenance.author': ['By', '操作人'],
  'maintenance.since': ['Begun', '开始'],
  'maintenance.begin': ['Begin maintenance', '开始维护'],
  'maintenance.beginText': [
    'Until {time} users of the console get 503 with your message: at all replicas, over restarts.',
    '在 {time} 之前，所有副本上的控制台用户会收到 503 和您的提示信息，重启后依然有效。'
  ],
  'maintenance.for': ['For', '时长'],
  'maintenance.minutes': ['{n:minute|minutes}', '{n} 分钟'],
  'maintenance.scope': ['Closes', '关闭范围'],
  'maintenance.everything': ['everything', '全部'],
  'maintenance.readOnly': ['changes only (read-only mode)', '仅修改操作（只读模式）'],
  'maintenance.messageForUsers': ['Message for users', '给用户的提示信息'],
  'maintenance.end': ['End maintenance', '结束维护'],
  'maintenance.endText': [
    'Opens again what operators closed. What routes.yaml closes stays closed.',
    '重新开放运维人员关闭的路由。routes.yaml 关闭的路由保持关闭。'
  ],
  'undo.maintenance.begin': [
    'End it here at any time; otherwise it ends by itself.',
    '可随时在此结束；否则到期自动结束。'
  ],
  'undo.maintenance.end': ['Begin it again.', '可以再次开始。']
} as const
