-- A store of version 10, written by a program that knew no later one.
PRAGMA user_version = 10;
PRAGMA application_id = 1835101282;
BEGIN TRANSACTION;
CREATE TABLE action (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    done INTEGER NOT NULL,
    message TEXT NOT NULL,
    done_to TEXT NOT NULL
) STRICT;
INSERT INTO "action" VALUES(20,1800000070.125,'ana','laptop','{"command":"CancelTasks","task_ids":[4],"expected":null}',1,'Task 4 is canceled.','[4]');
CREATE TABLE engine (
    id TEXT NOT NULL,
    epoch INTEGER NOT NULL
, last_task_id INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "engine" VALUES('e0e1e2e3e4e5e6e7e8e9eaebecedeeef',1,0);
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1,1800000000.125,'{"event":"TaskCreated","task_id":1,"sha256":"4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08","type":"static","priority":1,"name":"sample.exe","retry_of":null}');
INSERT INTO "event" VALUES(2,1,1800000001.125,'{"event":"TaskStarting","task_id":1,"worker":"worker-1","attempt":1,"machine":null}');
INSERT INTO "event" VALUES(3,1,1800000002.125,'{"event":"TaskStageChanged","task_id":1,"state":"running"}');
INSERT INTO "event" VALUES(4,1,1800000003.125,'{"event":"TaskStageChanged","task_id":1,"state":"stopping"}');
INSERT INTO "event" VALUES(5,1,1800000004.125,'{"event":"TaskCompleted","task_id":1,"ended_by":"finished","reason":"finished","verdict":{"classification":"suspicious","score":40,"confidence":null,"labels":["odd"]}}');
INSERT INTO "event" VALUES(6,1,1800000000.125,'{"event":"TaskCreated","task_id":2,"sha256":"c071cf5f5ed6f884cc70155b6f05f755fd46a302d05e4261b7e92ce878bbfed8","type":"static","priority":1,"name":"a new\\x0aline \\xff.exe","retry_of":null}');
INSERT INTO "event" VALUES(7,1,1800000010.125,'{"event":"TaskStarting","task_id":2,"worker":"worker-1","attempt":1,"machine":null}');
INSERT INTO "event" VALUES(8,1,1800000011.125,'{"event":"TaskStageChanged","task_id":2,"state":"running"}');
INSERT INTO "event" VALUES(9,1,1800000000.125,'{"event":"TaskCreated","task_id":3,"sha256":"62a2fed3d6e08c44835fce71f02210b1ddabfb066e39edf1e6c261988f824dd3","type":"dynamic","priority":7,"name":"setup.exe","retry_of":null}');
INSERT INTO "event" VALUES(10,1,1800000000.125,'{"event":"TaskCreated","task_id":4,"sha256":"f12fde684b2ed4c627b777a0d2346ef769ccdd9f3e4ad3dab5cf663ba9598d0f","type":"static","priority":1,"name":"canceled.exe","retry_of":null}');
INSERT INTO "event" VALUES(11,1,1800000020.125,'{"event":"TaskCanceled","task_id":4,"ended_by":"user","reason":"Canceled by ana while it waited.","verdict":null}');
INSERT INTO "event" VALUES(12,1,1800000000.125,'{"event":"TaskCreated","task_id":5,"sha256":"9ea90488b5c8219acc0b2eb36f115242abdbc865d061c24f2c8dfc0c9b57efab","type":"static","priority":1,"name":"stopping.exe","retry_of":null}');
INSERT INTO "event" VALUES(13,1,1800000030.125,'{"event":"TaskStarting","task_id":5,"worker":"worker-1","attempt":1,"machine":null}');
INSERT INTO "event" VALUES(14,1,1800000031.125,'{"event":"TaskStageChanged","task_id":5,"state":"running"}');
INSERT INTO "event" VALUES(15,1,1800000040.125,'{"event":"TaskStageChanged","task_id":5,"state":"stopping"}');
INSERT INTO "event" VALUES(16,1,1800000050.125,'{"event":"TaskCreated","task_id":6,"sha256":"4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08","type":"static","priority":1,"name":"sample.exe","retry_of":1}');
INSERT INTO "event" VALUES(17,1,1800000000.125,'{"event":"TaskCreated","task_id":7,"sha256":"1beeed7930457eeb56c82625fc7adbb8132cc8b4e99a726bc8c2938b14c6499d","type":"static","priority":1,"name":"back.exe","retry_of":null}');
INSERT INTO "event" VALUES(18,1,1800000060.125,'{"event":"TaskStarting","task_id":7,"worker":"worker-1","attempt":1,"machine":null}');
INSERT INTO "event" VALUES(19,1,1800000061.125,'{"event":"TaskGivenBack","task_id":7,"reason":"The last attempt was interrupted.","crashes":1}');
INSERT INTO "event" VALUES(20,1,1800000070.125,'{"event":"ActionTaken","actor":"ana","action":{"command":"CancelTasks","task_ids":[4],"expected":null},"done":true,"message":"Task 4 is canceled.","origin":"laptop","done_to":[4]}');
CREATE TABLE intake (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    began_at REAL NOT NULL,
    latest_at REAL NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    way TEXT NOT NULL,
    title TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    refused INTEGER NOT NULL
) STRICT;
INSERT INTO "intake" VALUES(1,'k1',1800000000.125,1800000000.125,'ana','','submit','/in/all.zip',1,0,1,1);
CREATE TABLE intake_line (
    number INTEGER PRIMARY KEY,
    intake INTEGER NOT NULL,
    at REAL NOT NULL,
    fate TEXT NOT NULL,
    name BLOB NOT NULL,
    origin BLOB NOT NULL,
    archive TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes INTEGER,
    task_id INTEGER,
    code TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
INSERT INTO "intake_line" VALUES(1,1,1800000000.125,'accepted',X'73616D706C652E657865',X'2F696E2F616C6C2E7A6970212F73616D706C652E657865','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08',11,1,'','');
INSERT INTO "intake_line" VALUES(2,1,1800000000.125,'refused',X'610A62FF',X'2F696E2F616C6C2E7A6970212F610A62FF','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','',NULL,NULL,'link','It is a link.');
INSERT INTO "intake_line" VALUES(3,1,1800000000.125,'opened',X'616C6C2E7A6970',X'2F696E2F616C6C2E7A6970','','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd',320,NULL,'','zip archive: 1 taken, 1 refused');
CREATE TABLE removal (
    number INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    task_ids TEXT NOT NULL
) STRICT;
CREATE TABLE sample (
    sha256 TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    first_seen_at REAL NOT NULL,
    identification TEXT
, notes TEXT NOT NULL DEFAULT '[]', tags TEXT NOT NULL DEFAULT '[]') STRICT, WITHOUT ROWID;
INSERT INTO "sample" VALUES('1beeed7930457eeb56c82625fc7adbb8132cc8b4e99a726bc8c2938b14c6499d',10,1800000000.125,NULL,'[]','[]');
INSERT INTO "sample" VALUES('4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08',9,1800000000.125,'{"kind":"pe","mime":"application/x-dosexec","platform":"windows","arch":"x64","description":"PE32+"}','[{"at":1800000071.125,"actor":"ana","text":"seen before"}]','["apt","office"]');
INSERT INTO "sample" VALUES('62a2fed3d6e08c44835fce71f02210b1ddabfb066e39edf1e6c261988f824dd3',7,1800000000.125,NULL,'[]','[]');
INSERT INTO "sample" VALUES('9ea90488b5c8219acc0b2eb36f115242abdbc865d061c24f2c8dfc0c9b57efab',8,1800000000.125,NULL,'[]','[]');
INSERT INTO "sample" VALUES('c071cf5f5ed6f884cc70155b6f05f755fd46a302d05e4261b7e92ce878bbfed8',7,1800000000.125,NULL,'[]','[]');
INSERT INTO "sample" VALUES('f12fde684b2ed4c627b777a0d2346ef769ccdd9f3e4ad3dab5cf663ba9598d0f',8,1800000000.125,NULL,'[]','[]');
CREATE TABLE "sample_name" (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES sample (sha256),
    name BLOB NOT NULL,
    origin BLOB NOT NULL,
    archive TEXT NOT NULL DEFAULT '',
    UNIQUE (sha256, name, origin, archive)
) STRICT;
INSERT INTO "sample_name" VALUES(1,'4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08',X'73616D706C652E657865',X'2F696E2F73616D706C652E657865','');
INSERT INTO "sample_name" VALUES(2,'c071cf5f5ed6f884cc70155b6f05f755fd46a302d05e4261b7e92ce878bbfed8',X'61206E65770A6C696E6520FF2E657865',X'2F696E2F61206E65770A6C696E6520FF2E657865','');
INSERT INTO "sample_name" VALUES(3,'62a2fed3d6e08c44835fce71f02210b1ddabfb066e39edf1e6c261988f824dd3',X'73657475702E657865',X'2F696E2F73657475702E657865','');
INSERT INTO "sample_name" VALUES(4,'f12fde684b2ed4c627b777a0d2346ef769ccdd9f3e4ad3dab5cf663ba9598d0f',X'63616E63656C65642E657865',X'2F696E2F63616E63656C65642E657865','');
INSERT INTO "sample_name" VALUES(5,'9ea90488b5c8219acc0b2eb36f115242abdbc865d061c24f2c8dfc0c9b57efab',X'73746F7070696E672E657865',X'2F696E2F73746F7070696E672E657865','');
INSERT INTO "sample_name" VALUES(6,'1beeed7930457eeb56c82625fc7adbb8132cc8b4e99a726bc8c2938b14c6499d',X'6261636B2E657865',X'2F696E2F6261636B2E657865','');
INSERT INTO "sample_name" VALUES(7,'4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08',X'73616D706C652E657865',X'2F696E2F616C6C2E7A6970212F73616D706C652E657865','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd');
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES sample (sha256),
    type TEXT NOT NULL,
    requires TEXT NOT NULL,
    priority INTEGER NOT NULL,
    timeout_s REAL NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    retry_of INTEGER REFERENCES task (id) CHECK (retry_of < id),
    worker TEXT,
    token TEXT,
    lease_until REAL,
    created_at REAL NOT NULL,
    stage_since REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    stages TEXT NOT NULL,
    outcome TEXT,
    ended_by TEXT,
    reason TEXT NOT NULL,
    verdict TEXT,
    plugins TEXT NOT NULL
, machine TEXT, enforce_timeout INTEGER NOT NULL DEFAULT 0, run TEXT NOT NULL DEFAULT '{}', profile TEXT, results_removed_at REAL, owner TEXT NOT NULL DEFAULT '', wishes TEXT NOT NULL DEFAULT '{}') STRICT;
INSERT INTO "task" VALUES(1,'4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08','static','{}',1,300.0,'completed',1,0,NULL,'worker-1',NULL,NULL,1800000000.125,1800000004.125,1800000001.125,1800000004.125,'{"pending":1.0,"initializing":1.0,"running":1.0,"stopping":1.0}',NULL,'finished','finished','{"classification":"suspicious","score":40,"confidence":null,"labels":["odd"]}','[{"name":"yara","version":"1","status":"completed","seconds":0.30000000000000004,"results":[{"name":"report","format":"json","size_bytes":2,"sha256":"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","path":"1/token-1/yara/report"}],"verdict":{"classification":"suspicious","score":40,"confidence":null,"labels":["odd"]},"reason":""}]',NULL,0,'{}',NULL,NULL,'','{}');
INSERT INTO "task" VALUES(2,'c071cf5f5ed6f884cc70155b6f05f755fd46a302d05e4261b7e92ce878bbfed8','static','{}',1,300.0,'running',1,0,NULL,'worker-1','token-running',1800000070.125,1800000000.125,1800000011.125,1800000010.125,NULL,'{"pending":10.0,"initializing":1.0}',NULL,NULL,'',NULL,'[]',NULL,0,'{}',NULL,NULL,'','{}');
INSERT INTO "task" VALUES(3,'62a2fed3d6e08c44835fce71f02210b1ddabfb066e39edf1e6c261988f824dd3','dynamic','{"task_type":"dynamic","platform":"windows","arch":"x64","tags":["office"]}',7,300.0,'pending',0,0,NULL,NULL,NULL,NULL,1800000000.125,1800000000.125,NULL,NULL,'{}',NULL,NULL,'',NULL,'[]',NULL,0,'{}','{"name":"office","by":"hand","kind":"","timeout_s":null,"requires":{"task_type":"static","platform":null,"arch":null,"tags":[],"pin":null,"avoid":[]}}',NULL,'ana','{"only":["strings"],"options":{"strings":{"min_length":"8"}}}');
INSERT INTO "task" VALUES(4,'f12fde684b2ed4c627b777a0d2346ef769ccdd9f3e4ad3dab5cf663ba9598d0f','static','{}',1,300.0,'canceled',0,0,NULL,NULL,NULL,NULL,1800000000.125,1800000020.125,NULL,1800000020.125,'{"pending":20.0}',NULL,'user','Canceled by ana while it waited.',NULL,'[]',NULL,0,'{}',NULL,NULL,'','{}');
INSERT INTO "task" VALUES(5,'9ea90488b5c8219acc0b2eb36f115242abdbc865d061c24f2c8dfc0c9b57efab','static','{}',1,300.0,'stopping',1,0,NULL,'worker-1','token-stopping',1800000090.125,1800000000.125,1800000040.125,1800000030.125,NULL,'{"pending":30.0,"initializing":1.0,"running":9.0}','{"state":"timed_out","ended_by":"analysis_timeout","reason":"It took longer than 300 s.","verdict":null,"plugins":[]}',NULL,'',NULL,'[]',NULL,0,'{}',NULL,NULL,'','{}');
INSERT INTO "task" VALUES(6,'4ddb3e96801a1ee2b77dc5247c0db478d5f97a93b90e7cdb09f5f51d43764b08','static','{}',1,300.0,'pending',0,0,1,NULL,NULL,NULL,1800000050.125,1800000050.125,NULL,NULL,'{}',NULL,NULL,'',NULL,'[]',NULL,0,'{}',NULL,NULL,'','{}');
INSERT INTO "task" VALUES(7,'1beeed7930457eeb56c82625fc7adbb8132cc8b4e99a726bc8c2938b14c6499d','static','{}',1,300.0,'pending',0,1,NULL,NULL,NULL,NULL,1800000000.125,1800000061.125,NULL,NULL,'{"pending":60.0}',NULL,NULL,'The last attempt was interrupted.',NULL,'[]',NULL,0,'{}',NULL,NULL,'','{}');
CREATE INDEX task_by_state ON task (state, priority DESC, id);
CREATE INDEX task_by_sample ON task (sha256, id);
CREATE UNIQUE INDEX task_by_token ON task (token) WHERE token IS NOT NULL;
CREATE INDEX task_by_retry ON task (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX intake_line_by_intake ON intake_line (intake, number);
CREATE INDEX sample_name_by_archive ON sample_name (archive, sha256) WHERE archive <> '';
CREATE INDEX task_by_owner ON task (owner) WHERE owner <> '';
COMMIT;
