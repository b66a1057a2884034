"""Signs requests as Twilio's own library does: `{"url", "fields": [[name, value], …], "token", "algorithm"}` in, signature and form out."""

import json
import sys
import urllib.parse

from twilio.request_validator import RequestValidator



class Fields(dict):
    def getall(self, name):
        return self[name]


for line in sys.stdin:
    request = json.loads(line)
    fields = Fields()
    for name, value in request["fields"]:
        fields.setdefault(name, []).append(value)
    validator = RequestValidator(request["token"])
    signature = validator.compute_signature(request["url"], fields, request["algorithm"])
    print(json.dumps({"signature": signature, "form": urllib.parse.urlencode([tuple(pair) for pair in request["fields"]])}), flush=True)
