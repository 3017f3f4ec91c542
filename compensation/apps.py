from django.apps import AppConfig


class CompensationConfig(AppConfig):
    name = "compensation"
