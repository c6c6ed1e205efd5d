//! The table of routes as OpenAPI 3.1, and as a page of the reference.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::refusal::RefusalDocument;
use crate::route::{ApiRoute, RouteContent, RouteHandler, RouteParameter, RouteParameterKind};
use crate::route_table::ROUTES;

/// Where OpenAPI has its schemas.
const SCHEMAS: &str = "/components/schemas";

/// The document.
pub(crate) fn open_api_document() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = SCHEMAS.into();
    let mut schemas = settings.into_generator();
    let refusal = schemas.subschema_for::<RefusalDocument<'static>>().to_value();
    let mut paths = serde_json::Map::new();
    for route in ROUTES {
        let content = match &route.gives {
            RouteContent::Json(schema) => json!({ "schema": schema(&mut schemas).to_value() }),
            // The schema of what follows `data:`.
            RouteContent::Events(schema) => {
                json!({ "schema": { "type": "string" }, "x-event-data": schema(&mut schemas).to_value() })
            }
            RouteContent::Page | RouteContent::Text(_) => json!({ "schema": { "type": "string" } }),
            RouteContent::Arrow => json!({}),
        };
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.about,
            "parameters": route.parameters.iter().map(parameter_value).collect::<Vec<_>>(),
            "responses": {
                "200": { "description": route.about, "content": { route.gives.media_type(): content } },
                "default": {
                    "description": "What is wrong, and what to do; a page where no API was asked",
                    "content": { "application/json": { "schema": refusal } },
                },
            },
        });
        if let RouteHandler::Writing(_, body) = &route.handler {
            let schema = body(&mut schemas).to_value();
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": schema } } });
        }
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.name().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "perflab serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of one archive. Paths below /api/v1 keep their meaning; fields may come, and none goes.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "the token in the address that perflab serve prints" },
            },
        },
        "security": [{ "token": [] }],
    })
}

fn parameter_value(parameter: &RouteParameter) -> Value {
    let text = json!({ "type": "string" });
    let (place, schema) = match parameter.kind {
        RouteParameterKind::Path => ("path", text),
        RouteParameterKind::Text => ("query", text),
        RouteParameterKind::Texts => ("query", json!({ "type": "array", "items": text })),
        RouteParameterKind::Number => ("query", json!({ "type": "integer", "minimum": 0 })),
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": schema,
    })
}

/// The page of the reference, in Markdown.
#[must_use]
pub fn render_api_reference() -> String {
    let mut page = String::from(
        "# The API of the web laboratory\n\nWhat `perflab serve` answers, with the token in the header \
         `Authorization: Bearer TOKEN`.\n`/api/v1/openapi.json` has the same with the schemas of all documents. A refusal has a status of \
         HTTP and a sentence, `{\"error\": \"...\"}` in the API.\n",
    );
    for route in ROUTES {
        append_route(&mut page, route);
    }
    page
}

fn append_route(page: &mut String, route: &ApiRoute) {
    // Writing to a string cannot fail.
    let (method, path, about) = (route.method.name(), route.path, route.about);
    let _ = writeln!(page, "\n## {method} {path}\n\n{about}: `{}`.", route.gives.media_type());
    if route.parameters.is_empty() {
        return;
    }
    *page += "\n| parameter | in | what |\n|---|---|---|\n";
    for parameter in route.parameters {
        let place = match (parameter.kind, parameter.is_required) {
            (RouteParameterKind::Path, _) => "path",
            (_, true) => "query, required",
            (_, false) => "query",
        };
        let about = parameter.about.replace('|', "\\|");
        let _ = writeln!(page, "| `{}` | {place} | {about} |", parameter.name);
    }
}

#[cfg(test)]
mod tests {
    use perflab_present::run_matter::RUN_MATTERS;

    use super::*;
    use crate::pictures::PICTURE_KINDS;

    #[test]
    fn every_reference_to_a_schema_is_there() {
        let document = open_api_document();
        let text = document.to_string();
        let references: Vec<&str> =
            text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 10);
        for reference in references {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }

    /// The names in a parameter's description, behind the colon where there is one.
    fn described_names(name: &str) -> Vec<&'static str> {
        let mut parameters = ROUTES.iter().flat_map(|route| route.parameters);
        let about = parameters.find(|parameter| parameter.name == name).unwrap().about;
        let names = about.rsplit(": ").next().unwrap_or_default();
        names.split([',', ' ']).filter(|name| !["", "or"].contains(name)).collect()
    }

    #[test]
    fn descriptions_name_what_there_is() {
        let kinds: Vec<String> = PICTURE_KINDS.iter().map(|kind| format!("{kind}.svg")).collect();
        assert_eq!(described_names("picture"), kinds);
        let matters: Vec<&str> = RUN_MATTERS.iter().map(|matter| matter.name).collect();
        assert_eq!(described_names("matter"), matters);
    }

    #[test]
    fn every_part_of_a_path_is_a_parameter() {
        for route in ROUTES {
            let parts: Vec<&str> =
                route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            let declared: Vec<&str> = route
                .parameters
                .iter()
                .filter(|parameter| parameter.kind == RouteParameterKind::Path)
                .map(|parameter| parameter.name)
                .collect();
            assert_eq!(parts, declared, "{}", route.path);
        }
        let ids: std::collections::BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
        assert_eq!(ids.len(), ROUTES.len());
    }
}
